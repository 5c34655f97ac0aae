//! The live line: the current resource and its elapsed time, redrawn by a
//! separate thread.

use std::io::{self, Write as _};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use ccm_host::{Host, Progress};

const FRAMES: &[char] = &['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'];
const ASCII_FRAMES: &[char] = &['|', '/', '-', '\\'];
const PACE: Duration = Duration::from_millis(100);
/// What is done sooner than this needs no line.
const DELAY: Duration = Duration::from_millis(150);
const WIDTH: usize = 80;

pub(super) struct Live {
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    text: Option<(String, Instant)>,
    /// How far the resource at work is.
    progress: Option<Progress>,
    is_drawn: bool,
    /// Held while the thread draws: it ends at once when this is dropped, and
    /// nothing waits for it.
    ticking: Option<Sender<()>>,
    frame: usize,
    is_utf8: bool,
    /// The columns that the line may take, the sign at its start included.
    width: usize,
}

impl Live {
    /// A line for a terminal that is this wide.
    pub(super) fn new(is_utf8: bool, width: Option<usize>) -> Self {
        // One that is as long as the terminal is wide would wrap in some.
        let width = width.unwrap_or(WIDTH) - 1;
        Self { state: Arc::new(Mutex::new(State { is_utf8, width, ..State::default() })) }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Says what is at work from now on.
    pub(super) fn show(&self, text: impl FnOnce() -> String) {
        let mut state = self.lock();
        let text: String = text().chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        state.text = Some((text, Instant::now()));
        state.progress = None;
        if state.ticking.is_none() {
            let (ticking, ended) = channel();
            state.ticking = Some(ticking);
            let shared = Arc::clone(&self.state);
            let draw = move || tick(&shared, &ended);
            // Without the thread there is no line; nothing else is lost.
            let _ = std::thread::Builder::new().name("live".into()).spawn(draw);
        }
    }

    /// Says how far downloads of this host are.
    pub(super) fn follow(&self, host: &Host) {
        let shared = Arc::clone(&self.state);
        host.on_progress(move |progress| {
            shared.lock().unwrap_or_else(PoisonError::into_inner).progress = Some(progress);
        });
    }

    /// Takes the line off the screen: something else is about to be printed.
    pub(super) fn clear(&self) {
        let mut state = self.lock();
        state.text = None;
        erase(&mut state);
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        let mut state = self.lock();
        state.text = None;
        erase(&mut state);
        state.ticking = None;
    }
}

/// How far a download is, as a bar where its end is known.
fn bar(progress: Progress, is_utf8: bool) -> String {
    const CELLS: u64 = 20;
    let megabytes = |bytes: u64| bytes as f64 / 1e6;
    let received = megabytes(progress.received);
    match progress.total.filter(|&total| total > 0) {
        Some(total) => {
            let done = progress.received.min(total);
            let cells = (done * CELLS / total) as usize;
            let (full, empty) = if is_utf8 { ("█", "░") } else { ("#", ".") };
            let (full, empty) = (full.repeat(cells), empty.repeat(CELLS as usize - cells));
            let percent = done * 100 / total;
            format!(" {full}{empty} {percent}% of {:.1} MB", megabytes(total))
        }
        None => format!(" {received:.1} MB"),
    }
}

fn erase(state: &mut State) {
    if std::mem::take(&mut state.is_drawn) {
        let _ = write!(io::stderr(), "\r\x1b[K");
    }
}

/// Draws at its pace, until the other end of `ended` is gone.
fn tick(shared: &Mutex<State>, ended: &Receiver<()>) {
    while ended.recv_timeout(PACE) == Err(RecvTimeoutError::Timeout) {
        let mut state = shared.lock().unwrap_or_else(PoisonError::into_inner);
        let Some((text, begin)) = &state.text else { continue };
        let elapsed = begin.elapsed();
        if elapsed < DELAY {
            continue;
        }
        let is_utf8 = state.is_utf8;
        let bar = state.progress.map(|progress| bar(progress, is_utf8)).unwrap_or_default();
        let width = state.width.saturating_sub(2);
        // Where there is no room for both, the bar tells more.
        let room = width.saturating_sub(bar.chars().count() + 8);
        let text: String = text.chars().take(room).collect();
        let line = format!("{text}{bar} {}s", elapsed.as_secs());
        let line: String = line.chars().take(width).collect();
        let frames = if is_utf8 { FRAMES } else { ASCII_FRAMES };
        let frame = frames[state.frame % frames.len()];
        let _ = write!(io::stderr(), "\r\x1b[K{frame} {line}");
        state.frame += 1;
        state.is_drawn = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_thread_ends_with_the_line() {
        let live = Live::new(true, None);
        live.show(|| "at work".to_owned());
        live.show(|| "still at work".to_owned());
        let state = Arc::downgrade(&live.state);
        drop(live);
        // The thread holds the state for as long as it lives.
        ccm_testkit::wait_until("the end of the thread", || state.strong_count() == 0);
    }

    #[test]
    fn bars_show_what_is_known() {
        let ascii = bar(Progress { received: 1, total: Some(2) }, false);
        assert_eq!(ascii, " ##########.......... 50% of 0.0 MB");
        let bar = |received, total| bar(Progress { received, total }, true);
        assert_eq!(bar(0, Some(10_000_000)), " ░░░░░░░░░░░░░░░░░░░░ 0% of 10.0 MB");
        assert_eq!(bar(5_500_000, Some(10_000_000)), " ███████████░░░░░░░░░ 55% of 10.0 MB");
        assert_eq!(bar(11, Some(10)), " ████████████████████ 100% of 0.0 MB");
        assert_eq!(bar(1_250_000, None), " 1.2 MB");
        assert_eq!(bar(1_250_000, Some(0)), " 1.2 MB");
    }
}
