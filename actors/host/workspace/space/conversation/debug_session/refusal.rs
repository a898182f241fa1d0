//! Why a session is over, and why something cannot be asked of it now.

/// Why a session is over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// The debuggee ended.
    Finished,
    /// Somebody asked for it.
    Terminated,
    /// Its time was up.
    Expired,
    /// It never began; in the adapter's words.
    NotStarted(String),
    /// The adapter died or left.
    Lost(String),
    /// The conversation is over.
    Closed,
}

/// Why something cannot be asked now.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotNow {
    /// It runs.
    #[error("the program is running; `pause` it, or wait for a breakpoint with `continue`")]
    Running,
    /// It is not there yet.
    #[error("the session is still starting ({0})")]
    Starting(&'static str),
    /// It is over.
    #[error("the debug session is over")]
    Over,
    /// The reference is from another stop.
    #[error(
        "{0} belongs to an earlier stop, and the program has moved on: call `stack` for the frames of this one"
    )]
    Stale(i64),
    /// There never was such a reference.
    #[error(
        "there is no {what} {id}; `stack` gives frame ids, `scopes` and `variables` give references"
    )]
    Unknown {
        /// Frame or reference.
        what: &'static str,
        /// What was given.
        id: i64,
    },
    /// The one is given where the other is wanted.
    #[error("{id} is a {is}, not a {wanted}")]
    OtherKind {
        /// What was given.
        id: i64,
        /// What it is.
        is: &'static str,
        /// What is wanted.
        wanted: &'static str,
    },
    /// There is no such thread: lldb-dap answers for one as if it were there, and delve
    /// makes a stop of it.
    #[error("there is no thread {0}; `threads` lists them")]
    NoThread(i64),
    /// An evaluation has not come back.
    #[error(
        "`{0}` is still being evaluated, and the adapter answers nothing else meanwhile: wait and \
         try again, or `terminate` the session"
    )]
    Evaluating(String),
}
