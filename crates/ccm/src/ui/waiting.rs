//! The message while a run waits for another one.

use super::Ui;
use super::text::printable;

impl Ui {
    /// Says what ccm waits for: in the live line, or as a line of its own where
    /// there is no screen.
    pub(crate) fn waiting(&mut self, text: &str) {
        let text = printable(text).to_string();
        match &self.live {
            Some(live) => live.show(|| text),
            None => self.say(&format!("{text}\n")),
        }
    }
}
