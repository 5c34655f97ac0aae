//! The live line: which resource is at work, and for how long. Redrawn by a
//! thread of its own, so that a long action is seen to be alive.

use std::io::{self, Write as _};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

const FRAMES: [char; 10] = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'];
const PACE: Duration = Duration::from_millis(100);
/// What is done sooner than this needs no line.
const DELAY: Duration = Duration::from_millis(150);
const WIDTH: usize = 78;

pub(super) struct Live {
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    text: Option<(String, Instant)>,
    is_drawn: bool,
    is_ticking: bool,
    frame: usize,
}

impl Live {
    pub(super) fn new() -> Self {
        Self { state: Arc::default() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Says what is at work from now on.
    pub(super) fn show(&self, text: impl FnOnce() -> String) {
        let mut state = self.lock();
        let text: String = text().chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        state.text = Some((text, Instant::now()));
        if !std::mem::replace(&mut state.is_ticking, true) {
            let shared = Arc::clone(&self.state);
            // Without the thread there is no line; nothing else is lost.
            let _ = std::thread::Builder::new().name("live".into()).spawn(move || tick(&shared));
        }
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
        self.clear();
    }
}

fn erase(state: &mut State) {
    if std::mem::take(&mut state.is_drawn) {
        let _ = write!(io::stderr(), "\r\x1b[K");
    }
}

fn tick(shared: &Mutex<State>) {
    loop {
        std::thread::sleep(PACE);
        let mut state = shared.lock().unwrap_or_else(PoisonError::into_inner);
        let Some((text, begin)) = &state.text else { continue };
        let elapsed = begin.elapsed();
        if elapsed < DELAY {
            continue;
        }
        let line = format!("{text} {}s", elapsed.as_secs());
        let line: String = line.chars().take(WIDTH).collect();
        let frame = FRAMES[state.frame % FRAMES.len()];
        let _ = write!(io::stderr(), "\r\x1b[K{frame} {line}");
        state.frame += 1;
        state.is_drawn = true;
    }
}
