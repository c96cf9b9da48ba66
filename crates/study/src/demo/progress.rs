//! The bar that shows how far the demo is; nothing where standard error is no terminal.

use crate::clock;
use indicatif::{ProgressBar, ProgressStyle};
use rota_answer::{Ends, Failure};
use rota_units::{Instant, Span};

const TICK: Span = Span::from_millis(100);

/// A progress bar over planned time.
pub struct Progress {
    bar: ProgressBar,
    ends: Ends,
}

impl Progress {
    /// A bar over `total` of waiting, which `ends` cuts short.
    pub fn new(total: Span, ends: Ends) -> Self {
        let bar = ProgressBar::new(total.as_nanos());
        let style = ProgressStyle::with_template("{bar:40} {percent:>3} %  {msg}");
        // The template is fixed and valid; without it the default style serves too.
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        Self { bar, ends }
    }

    /// True if a signal has asked the demo to end.
    pub fn is_interrupted(&self) -> bool {
        self.ends.came()
    }

    /// Changes the words beside the bar.
    pub fn say(&self, words: String) {
        self.bar.set_message(words);
    }

    /// Waits until `deadline` and moves the bar meanwhile.
    ///
    /// # Errors
    /// A signal asks the demo to end.
    pub fn wait_until(&self, deadline: Instant, words: String) -> Result<(), Failure> {
        self.say(words);
        let mut now = clock::now();
        while now < deadline {
            if self.is_interrupted() {
                return Err(Failure::interrupted("interrupted"));
            }
            clock::sleep_until(deadline.min(now + TICK));
            let later = clock::now();
            self.bar.inc(later.since(now).as_nanos());
            now = later;
        }
        Ok(())
    }

    /// Adds `more` of waiting to the bar.
    pub fn lengthen(&self, more: Span) {
        self.bar.inc_length(more.as_nanos());
    }

    /// Takes the bar off the screen.
    pub fn done(self) {
        self.bar.finish_and_clear();
    }
}
