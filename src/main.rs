//! The binary: a launcher when it is called as one, else the command line.

fn main() -> std::process::ExitCode {
    // First of all: every process that is started waits for this.
    if std::env::args_os().nth(1).is_some_and(|word| word == "__launch") {
        hostler::launch::child_main();
    }
    hostler::main()
}
