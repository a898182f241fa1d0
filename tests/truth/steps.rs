//! What runs do, one step after the other: data.

/// A line that is put in or taken out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Line {
    Fine,
    Wrong,
    Other,
    Wide,
    Tabbed,
    /// Of the run's own module.
    Import,
}

/// Through which door.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum By {
    /// A tool, which answers with a verdict.
    Tool,
    /// The shell, behind the tools: asked for afterwards.
    Shell,
}

/// What is done to a run's own file or module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Own {
    Add(By, Line),
    /// The last such line.
    Drop(By, Line),
    /// Lines above everything else, so that all that is known moves.
    Shift,
    /// The same text again.
    Same,
    Crlf,
    Lf,
    MakeModule(By),
    RemoveModule,
    /// Another name for it, under which nobody imports it.
    RenameModule,
}

/// What is done to what all runs depend on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shared {
    Break(By),
    Mend(By),
    /// Another branch, in which it is broken.
    CheckOut,
    CheckBack,
    Touch,
}

/// One step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Own(Own),
    Shared(Shared),
}

use By::{Shell, Tool};
use Line::{Fine, Import, Other, Tabbed, Wide, Wrong};
use Own::{Add, Crlf, Drop, Lf, MakeModule, RemoveModule, RenameModule, Same, Shift};
use Shared::{Break, CheckBack, CheckOut, Mend, Touch};
use Step::{Own as Do, Shared as All};

/// One round; the next has other numbers, other places and another writer. It ends
/// in the state in which it began, but for lines that are right.
pub(crate) const ROUND: [Step; 38] = [
    Do(Add(Tool, Fine)),
    Do(Add(Tool, Wrong)),
    Do(Shift),
    // The same error again, and each of the two fixed.
    Do(Add(Tool, Wrong)),
    Do(Drop(Tool, Wrong)),
    All(Break(Shell)),
    Do(Add(Tool, Other)),
    All(Mend(Shell)),
    Do(Same),
    Do(Drop(Tool, Wrong)),
    All(Break(Tool)),
    Do(Drop(Tool, Other)),
    All(Mend(Tool)),
    // Introduced again, and a fix behind the tools.
    Do(Add(Tool, Wrong)),
    Do(Drop(Shell, Wrong)),
    Do(MakeModule(Shell)),
    Do(Add(Tool, Import)),
    Do(RemoveModule),
    Do(Add(Tool, Wide)),
    Do(MakeModule(Tool)),
    Do(RenameModule),
    Do(Drop(Tool, Import)),
    Do(Drop(Tool, Wide)),
    All(CheckOut),
    Do(Add(Shell, Wrong)),
    All(CheckBack),
    Do(Add(Tool, Tabbed)),
    Do(Drop(Tool, Wrong)),
    Do(Crlf),
    Do(Add(Tool, Wide)),
    Do(Shift),
    Do(Drop(Tool, Tabbed)),
    All(Touch),
    Do(Lf),
    Do(Add(Tool, Fine)),
    Do(Drop(Tool, Wide)),
    Do(Add(Tool, Fine)),
    Do(Same),
];
