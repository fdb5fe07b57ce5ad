//! A progress bar on standard error: only in a terminal, only for work that lasts.

use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::simulate::Progress;

const QUIET_FOR: Duration = Duration::from_secs(1);

/// Appears after a second.
pub(super) struct Bar {
    bar: ProgressBar,
    since: Instant,
}

impl Bar {
    pub fn new() -> Self {
        let bar = ProgressBar::with_draw_target(Some(0), ProgressDrawTarget::hidden());
        let style = "{bar:40.cyan} {human_pos} of {human_len} sessions, {eta} left";
        if let Ok(style) = ProgressStyle::with_template(style) {
            bar.set_style(style);
        }
        Self { bar, since: Instant::now() }
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

impl Progress for Bar {
    fn goal(&self, sessions: u64) {
        self.bar.set_length(sessions);
    }

    fn done(&self, sessions: u64) {
        if self.bar.is_hidden() && self.since.elapsed() > QUIET_FOR {
            self.bar.set_draw_target(ProgressDrawTarget::stderr_with_hz(8));
        }
        self.bar.inc(sessions);
    }
}
