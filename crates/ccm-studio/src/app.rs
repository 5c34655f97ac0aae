//! State that all requests share.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use ccm_engine::{Engine, Inputs, RunOptions};
use ccm_host::{Cancel, CancelReason, Stat};
use ccm_http::Response;
use tokio::sync::{oneshot, watch};

use crate::Settings;
use crate::auth::Auth;
use crate::error::{ApiError, ApiResult};
use crate::files::FileKind;
use crate::known::LastText;
use crate::runs::Runs;

/// Time for a check, a template or data.
const PATIENCE: Duration = Duration::from_secs(10);
/// Work that was given up and still goes on. With more, what is new waits.
const MAX_ABANDONED: usize = 8;
/// Templates and manifests nest deeply.
pub(crate) const STACK: usize = 8 << 20;

pub(crate) struct App {
    pub(crate) settings: Settings,
    /// The engine for checks.
    offline: Engine,
    pub(crate) auth: Auth,
    pub(crate) runs: Runs,
    pub(crate) saving: Mutex<()>,
    /// What is known about files that were listed, by place.
    pub(crate) listed: Mutex<HashMap<String, Listed>>,
    /// Files that a page has read, which may be open in it.
    pub(crate) opened: Mutex<Vec<String>>,
    pub(crate) texts: LastText,
    /// Inputs of templates, as read last.
    inputs: Mutex<Option<Arc<Inputs>>>,
    stopping: watch::Sender<bool>,
    started: Instant,
    last_request: AtomicU64,
    has_session: AtomicBool,
    requests: AtomicU64,
    abandoned: Arc<AtomicUsize>,
}

/// What a listing says of a file, and what the file was then.
pub(crate) struct Listed {
    pub(crate) stat: Stat,
    pub(crate) kind: FileKind,
    pub(crate) resources: Option<usize>,
    pub(crate) errors: Option<usize>,
}

impl App {
    pub(crate) fn new(settings: Settings) -> Self {
        Self {
            offline: settings.engine.offline(),
            settings,
            auth: Auth::default(),
            runs: Runs::default(),
            saving: Mutex::default(),
            listed: Mutex::default(),
            opened: Mutex::default(),
            texts: LastText::default(),
            inputs: Mutex::default(),
            stopping: watch::Sender::new(false),
            started: Instant::now(),
            last_request: AtomicU64::new(0),
            has_session: AtomicBool::new(false),
            requests: AtomicU64::new(0),
            abandoned: Arc::default(),
        }
    }

    /// Notes a request of someone who has a key: the studio is in use.
    pub(crate) fn note_activity(&self) {
        self.last_request.store(self.started.elapsed().as_secs(), Ordering::Relaxed);
    }

    /// Counts a request; gives its id, which always has the same length.
    pub(crate) fn begin_request(&self) -> String {
        let number = self.requests.fetch_add(1, Ordering::Relaxed);
        format!("r{:08x}", number as u32)
    }

    pub(crate) fn opened_session(&self) {
        self.has_session.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_open(&self) -> bool {
        self.has_session.load(Ordering::Relaxed)
    }

    pub(crate) fn is_idle(&self) -> bool {
        let last = Duration::from_secs(self.last_request.load(Ordering::Relaxed));
        self.settings.idle.is_some_and(|idle| self.started.elapsed().saturating_sub(last) > idle)
    }

    pub(crate) fn stop(&self) {
        self.stopping.send_replace(true);
        self.runs.end();
    }

    /// Sees when the studio is about to end.
    pub(crate) fn stopping(&self) -> watch::Receiver<bool> {
        self.stopping.subscribe()
    }

    pub(crate) fn is_stopping(&self) -> bool {
        *self.stopping.borrow()
    }

    /// What templates see. Read once: checks use no network, and data from
    /// outside may come from there.
    pub(crate) fn inputs(&self) -> ApiResult<Arc<Inputs>> {
        let mut known = lock(&self.inputs);
        if let Some(inputs) = &*known {
            return Ok(Arc::clone(inputs));
        }
        let inputs = self.read_inputs(&self.settings.engine.options(Cancel::default()))?;
        *known = Some(Arc::clone(&inputs));
        Ok(inputs)
    }

    /// Reads anew what templates see, for a plan and for what follows it.
    pub(crate) fn fresh_inputs(&self, options: &RunOptions) -> ApiResult<Arc<Inputs>> {
        let inputs = self.read_inputs(options)?;
        *lock(&self.inputs) = Some(Arc::clone(&inputs));
        Ok(inputs)
    }

    fn read_inputs(&self, options: &RunOptions) -> ApiResult<Arc<Inputs>> {
        (self.settings.inputs)(options).map(Arc::new).map_err(ApiError::internal)
    }

    /// Options for work that changes nothing, runs no command and uses no
    /// network.
    pub(crate) fn quiet(&self, cancel: Cancel) -> ApiResult<(&Engine, RunOptions)> {
        let engine = &self.offline;
        let mut options = engine.options(cancel);
        options.mode.noop = true;
        options.inputs = (*self.inputs()?).clone();
        Ok((engine, options))
    }

    /// Does work of the engine in a thread of its own. What takes too long is
    /// given up, as is what nobody waits for any more.
    pub(crate) async fn work(
        self: &Arc<Self>,
        work: impl FnOnce(&Self, Cancel) -> ApiResult<Response> + Send + 'static,
    ) -> ApiResult<Response> {
        self.wait_for_abandoned().await?;
        let no_thread = |error: std::io::Error| ApiError::internal(error.to_string());
        let cancel = Cancel::with_deadline(PATIENCE).map_err(no_thread)?;
        let (sender, result) = oneshot::channel();
        let (app, token) = (Arc::clone(self), cancel.clone());
        let ended = Arc::new(AtomicBool::new(false));
        let abandoned = Arc::clone(&self.abandoned);
        let mut given_up = GivenUp { cancel, abandoned, ended: Arc::clone(&ended), is_done: false };
        let working = Working { ended, abandoned: Arc::clone(&self.abandoned) };
        let spawned =
            std::thread::Builder::new().name("work".into()).stack_size(STACK).spawn(move || {
                let _working = working;
                let _ = sender.send(work(&app, token));
            });
        spawned.map_err(no_thread)?;
        match tokio::time::timeout(PATIENCE, result).await {
            Ok(Ok(answer)) => {
                given_up.is_done = true;
                answer
            }
            Ok(Err(_)) => {
                given_up.is_done = true;
                Err(ApiError::internal("ccm has a bug: this request ended in a panic"))
            }
            Err(_) => Err(ApiError::too_slow(PATIENCE.as_secs())),
        }
    }
}

impl App {
    /// Waits while much goes on that was given up. It was cancelled, so mostly it
    /// ends soon.
    async fn wait_for_abandoned(&self) -> ApiResult<()> {
        let until = Instant::now() + PATIENCE;
        while self.abandoned.load(Ordering::Relaxed) >= MAX_ABANDONED {
            if Instant::now() >= until {
                let message = "too many abandoned requests are still running; try again later";
                let status = ccm_http::StatusCode::SERVICE_UNAVAILABLE;
                return Err(ApiError::new(status, "timeout", message));
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        Ok(())
    }
}

/// Cancels abandoned work, and counts it while it continues.
struct GivenUp {
    cancel: Cancel,
    abandoned: Arc<AtomicUsize>,
    /// Whether the work has ended or was abandoned.
    ended: Arc<AtomicBool>,
    is_done: bool,
}

impl Drop for GivenUp {
    fn drop(&mut self) {
        if self.is_done {
            return;
        }
        self.abandoned.fetch_add(1, Ordering::Relaxed);
        if self.ended.swap(true, Ordering::AcqRel) {
            // It ended before it could be given up.
            self.abandoned.fetch_sub(1, Ordering::Relaxed);
        }
        self.cancel.cancel(CancelReason::Requested);
    }
}

/// Work that goes on; the other half of [`GivenUp`].
struct Working {
    ended: Arc<AtomicBool>,
    abandoned: Arc<AtomicUsize>,
}

impl Drop for Working {
    fn drop(&mut self) {
        if self.ended.swap(true, Ordering::AcqRel) {
            self.abandoned.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// Takes a lock that a panic does not poison.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
