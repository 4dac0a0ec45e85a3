//! Figures as SVG without scripts.
//!
//! ```text
//!  title
//!  y │      ╭──●  a line, its points and their quartiles
//!    │  ●───╯  ◇   the paper's figure
//!    │      ○      oversubscribed: points without a line
//!    │ - - - - -   the model, dashed
//!    └───────────
//!        x
//! ```
//!
//! Every distinction by colour is also one by shape, and the legend names it.

mod bars;
mod lines;
mod overview;

use ringtap_terminal::chart::{Axis, COLOURS, Canvas, FONT, WIDTH, short};
pub(crate) use ringtap_terminal::chart::{STYLE as FIGURES, escaped, stand_alone};

pub(crate) use bars::{Bar, Bars};
pub(crate) use lines::{Chart, Line, LineKind, Mark};
pub(crate) use overview::{Entry, Overview, Sign};
