//! The async runtime behind the synchronous interface: one thread, started on
//! first use.

use std::time::Duration;

use ccm_host::Cancel;
use tokio::runtime::{Builder, EnterGuard, Handle};
use tokio::sync::oneshot;
use tokio::task::AbortHandle;

use crate::error::{Error, Problem, Result};

/// How often a wait looks whether the run was cancelled.
const CANCEL_INTERVAL: Duration = Duration::from_millis(50);

/// A thread that drives connections while their users do something else.
#[derive(Debug)]
pub(crate) struct Runtime {
    handle: Handle,
    /// Ends the thread when dropped.
    _stop: oneshot::Sender<()>,
}

impl Runtime {
    pub(crate) fn start() -> Result<Self> {
        let fail = |error: std::io::Error| {
            Error::before("", Problem::Runtime { reason: error.to_string() })
        };
        let runtime = Builder::new_current_thread().enable_all().build().map_err(fail)?;
        let handle = runtime.handle().clone();
        let (stop, stopped) = oneshot::channel::<()>();
        let run = move || {
            // Also ends when the sender is dropped.
            let _ = runtime.block_on(stopped);
        };
        std::thread::Builder::new().name("ccm-nats".to_owned()).spawn(run).map_err(fail)?;
        Ok(Self { handle, _stop: stop })
    }

    /// Lets something go on by itself; it ends with the runtime.
    pub(crate) fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) -> AbortHandle {
        self.handle.spawn(work).abort_handle()
    }

    /// Lets the calling thread start tasks while the result lives.
    pub(crate) fn enter(&self) -> EnterGuard<'_> {
        self.handle.enter()
    }

    /// Waits for something, but not after the run was cancelled.
    pub(crate) fn wait<T>(
        &self,
        cancel: &Cancel,
        work: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        self.handle.block_on(async {
            tokio::select! {
                result = work => result,
                () = cancelled(cancel) => Err(Error::before("", Problem::Cancelled)),
            }
        })
    }
}

async fn cancelled(cancel: &Cancel) {
    while !cancel.is_cancelled() {
        tokio::time::sleep(CANCEL_INTERVAL).await;
    }
}
