//! Reads top down: everything is in the library, so that tests reach it too.

fn main() -> std::process::ExitCode {
    hostler::main()
}
