//! What a server says it is busy with. Pure.

use std::collections::BTreeMap;

use serde_json::Value;

/// Tokens at once; one more is not shown. Real servers have some 5.
const CAP: usize = 64;

/// The work that was begun and not ended, by token.
#[derive(Debug, Default)]
pub(super) struct Progress(BTreeMap<String, Work>);

#[derive(Debug, Default)]
struct Work {
    title: String,
    message: Option<String>,
    percentage: Option<u64>,
}

impl Progress {
    /// Takes the params of `$/progress`; those of partial results say nothing here.
    pub(super) fn take(&mut self, params: &Value) {
        let (Some(token), Some(value)) = (params.get("token"), params.get("value")) else { return };
        let text = |name: &str| value.get(name).and_then(Value::as_str).map(str::to_owned);
        let percentage = value.get("percentage").and_then(Value::as_u64);
        let token = token.to_string();
        match value.get("kind").and_then(Value::as_str) {
            Some("begin") if self.0.len() < CAP => {
                let title = text("title").unwrap_or_else(|| "working".to_owned());
                self.0.insert(token, Work { title, message: text("message"), percentage });
            }
            Some("report") => {
                if let Some(work) = self.0.get_mut(&token) {
                    work.message = text("message").or(work.message.take());
                    work.percentage = percentage.or(work.percentage);
                }
            }
            Some("end") => drop(self.0.remove(&token)),
            _ => {}
        }
    }

    /// Returns it in one line, or `None` when the server is idle.
    pub(super) fn line(&self) -> Option<String> {
        let works = self.0.values().take(3).map(|work| {
            let mut line = work.title.clone();
            if let Some(message) = work.message.as_deref().filter(|text| !text.is_empty()) {
                line = format!("{line}: {message}");
            }
            match work.percentage {
                Some(percentage) => format!("{line} ({percentage} %)"),
                None => line,
            }
        });
        let line = works.collect::<Vec<_>>().join(", ");
        (!line.is_empty()).then(|| match self.0.len() {
            more @ 4.. => format!("{line} and {} more", more - 3),
            _ => line,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn work_is_shown_from_its_begin_to_its_end() {
        let mut progress = Progress::default();
        let mut after = |token: Value, value: Value| {
            progress.take(&json!({ "token": token, "value": value }));
            progress.line()
        };
        let line = |text: &str| Some(text.to_owned());
        assert_eq!(after(json!(1), json!({ "kind": "report", "message": "never begun" })), None);
        assert_eq!(after(json!(1), json!({ "kind": "begin", "title": "Index" })), line("Index"));
        assert_eq!(
            after(json!(1), json!({ "kind": "report", "message": "3/9", "percentage": 33 })),
            line("Index: 3/9 (33 %)")
        );
        // A token that is a string is another one than the number.
        assert_eq!(
            after(json!("1"), json!({ "kind": "begin" })),
            line("working, Index: 3/9 (33 %)")
        );
        assert_eq!(after(json!(1), json!({ "kind": "end" })), line("working"));
        assert_eq!(after(json!("1"), json!({ "kind": "end" })), None);
        assert_eq!(after(json!("x"), json!([{ "partial": "result" }])), None);
    }

    #[test]
    fn a_flood_is_capped() {
        let mut progress = Progress::default();
        for token in 0..1000 {
            progress.take(&json!({ "token": token, "value": { "kind": "begin", "title": "x" } }));
        }
        assert_eq!(progress.line().as_deref(), Some("x, x, x and 61 more"));
    }
}
