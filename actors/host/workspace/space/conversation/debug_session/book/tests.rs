//! What may be asked when, over sequences of events as adapters send them.

use serde_json::json;

use super::*;

fn live() -> Book {
    let mut book = Book::new(0);
    book.starting = None;
    book
}

fn stopped(thread: i64) -> Value {
    json!({ "reason": "breakpoint", "threadId": thread, "allThreadsStopped": true })
}

#[test]
fn a_reference_dies_with_its_stop() {
    let mut book = live();
    book.on_event(ROOT, "stopped", &stopped(1));
    let frame = book.refer(ROOT, 1, What::Frame, 1000);
    assert_eq!(frame, 100_001);
    assert_eq!(book.target(frame, What::Frame).unwrap().0.id, 1000);
    let error = book.target(frame, What::Variables).unwrap_err();
    assert_eq!(error.to_string(), "100001 is a frame id, not a variables reference");
    book.resume(ROOT).unwrap();
    assert_eq!(book.target(frame, What::Frame), Err(NotNow::Running));
    book.on_event(ROOT, "stopped", &stopped(1));
    // The adapter hands out the same number again: ours differs.
    let again = book.refer(ROOT, 2, What::Frame, 1000);
    assert_eq!(again, 200_001);
    assert_eq!(book.target(frame, What::Frame), Err(NotNow::Stale(frame)));
    book.forget_old();
    assert_eq!(book.target(frame, What::Frame), Err(NotNow::Stale(frame)));
    assert!(matches!(book.target(7, What::Frame), Err(NotNow::Unknown { .. })));
    assert!(matches!(book.target(900_001, What::Frame), Err(NotNow::Unknown { .. })));
    // An answer that comes after the stop is over hands out nothing.
    assert_eq!(book.refer(ROOT, 1, What::Variables, 5), 0);
    assert_eq!(book.refer(ROOT, 2, What::Variables, 0), 0);
}

#[test]
fn a_step_that_is_refused_leaves_the_stop_as_it_was() {
    let mut book = live();
    book.on_event(ROOT, "stopped", &stopped(1));
    let frame = book.refer(ROOT, 1, What::Frame, 3);
    let taken = book.resume(ROOT).unwrap();
    book.not_resumed(ROOT, taken);
    assert!(book.target(frame, What::Frame).is_ok());
    // Unless it has moved all the same.
    let taken = book.resume(ROOT).unwrap();
    book.on_event(ROOT, "stopped", &stopped(2));
    book.not_resumed(ROOT, taken);
    assert_eq!(book.halt(ROOT).unwrap().number, 2);
}

#[test]
fn continued_takes_back_a_stop_and_only_that() {
    let mut book = live();
    book.on_event(ROOT, "stopped", &stopped(1));
    book.on_event(ROOT, "continued", &json!({ "threadId": 1, "allThreadsContinued": true }));
    assert_eq!(book.stopped_limb(), Err(NotNow::Running));
    // Two threads that stop one after the other, of which one goes on.
    book.on_event(ROOT, "stopped", &stopped(1));
    book.on_event(ROOT, "stopped", &stopped(2));
    assert_eq!(book.halt(ROOT).unwrap().others, [(2, "breakpoint".to_owned())]);
    book.on_event(ROOT, "continued", &json!({ "threadId": 1 }));
    assert_eq!(book.stopped_thread(None), Ok((ROOT, 2)));
    book.on_event(ROOT, "continued", &json!({}));
    assert_eq!(book.stopped_limb(), Err(NotNow::Running));
}

#[test]
fn a_pause_is_called_one_whatever_the_adapter_calls_it() {
    let mut book = live();
    book.limbs.get_mut(&ROOT).unwrap().pausing = true;
    let event = json!({ "reason": "exception", "description": "signal SIGSTOP" });
    book.on_event(ROOT, "stopped", &event);
    let halt = book.halt(ROOT).unwrap();
    assert_eq!((halt.stopped.reason.as_str(), halt.stopped.thread), ("pause", None));
    assert_eq!(book.stopped_thread(None), Ok((ROOT, 0)));
}

#[test]
fn children_have_threads_and_ends_of_their_own() {
    let mut book = live();
    let child = book.add_limb("child 7".to_owned());
    book.on_event(ROOT, "stopped", &stopped(1));
    book.on_event(child, "stopped", &stopped(1));
    assert_eq!(book.stopped_thread(None), Ok((child, 1)));
    let named = outer_thread(child, 1);
    assert_eq!(book.inner_thread(named), (child, 1));
    assert_eq!(book.stopped_thread(Some(1)), Ok((ROOT, 1)));
    let mark = book.last_stop();
    book.resume(child).unwrap();
    assert!(!book.settled(mark));
    assert_eq!(book.on_event(child, "terminated", &Value::Null), Some(Effect::ChildGone(child)));
    assert!(book.settled(mark), "nobody runs any more, and the root is still stopped");
    assert_eq!(book.stopped_thread(None), Ok((ROOT, 1)));
    // A large id that is no child's is the adapter's own.
    assert_eq!(book.inner_thread(5_000_000_000), (ROOT, 5_000_000_000));
}

#[test]
fn the_end_is_told_once_and_not_while_starting() {
    let mut book = Book::new(7);
    assert_eq!(book.stopped_limb(), Err(NotNow::Starting("connecting to the adapter")));
    assert_eq!(book.on_event(ROOT, "terminated", &Value::Null), None);
    let mut book = live();
    book.on_event(ROOT, "exited", &json!({ "exitCode": 3 }));
    assert_eq!(book.on_event(ROOT, "terminated", &Value::Null), Some(Effect::Finished));
    assert_eq!(book.on_event(ROOT, "terminated", &Value::Null), None);
    assert_eq!(book.exit_code, Some(3));
    book.over = Some(End::Finished);
    assert_eq!(book.stopped_limb(), Err(NotNow::Over));
}

#[test]
fn a_stop_is_news_until_it_is_told() {
    let mut book = live();
    assert!(!book.is_news(None) && book.is_running());
    book.on_event(ROOT, "stopped", &stopped(1));
    assert!(book.is_news(None) && book.is_news(Some(1)) && !book.is_running());
    // Of a stop that is over nothing is noted.
    book.tell(ROOT, 7);
    assert!(book.is_news(None));
    book.tell(ROOT, 1);
    assert!(!book.is_news(None));
    // A step that is refused makes no news of it.
    let taken = book.resume(ROOT).unwrap();
    book.not_resumed(ROOT, taken);
    assert!(!book.is_news(None));
    book.resume(ROOT).unwrap();
    book.on_event(ROOT, "stopped", &stopped(1));
    assert!(book.is_news(None));
}

#[test]
fn a_stop_on_entry_is_called_so_whatever_the_adapter_makes_of_it() {
    for (reason, told) in [
        ("exception", "entry"),
        ("function breakpoint", "entry"),
        ("entry", "entry"),
        ("breakpoint", "breakpoint"),
    ] {
        let mut book = live();
        book.limbs.get_mut(&ROOT).unwrap().entering = true;
        let body = json!({ "reason": reason, "description": "signal SIGSTOP", "threadId": 1 });
        book.on_event(ROOT, "stopped", &body);
        assert_eq!(book.halt(ROOT).unwrap().stopped.reason, told, "{reason}");
        book.resume(ROOT).unwrap();
        book.on_event(ROOT, "stopped", &body);
        assert_eq!(book.halt(ROOT).unwrap().stopped.reason, reason, "only the first");
    }
}
