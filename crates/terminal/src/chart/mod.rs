//! Charts as SVG, without scripts.
//!
//! Colours are CSS classes: the style has a light and a dark scheme. Every distinction by colour is also one by shape or
//! position.

mod axis;
mod canvas;
mod timeline;

pub use axis::{Axis, short};
pub use canvas::{COLOURS, Canvas, FONT, STYLE, WIDTH, escaped, stand_alone};
pub use timeline::Timeline;
