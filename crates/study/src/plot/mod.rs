//! The one plotter: axes, and what is drawn on them, as SVG that needs nothing else. A page or a figure says
//! where the axes stand and gives the styles of the classes.

mod axis;
mod ink;
mod panel;

pub use axis::{Axis, number};
pub use ink::{CHARACTER, colour, diamond, escape, text};
pub use panel::{Area, Frame, Limit, Look, Panel, Printed, Series};
