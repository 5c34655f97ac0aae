//! Predicted state of services in a preview: units that earlier steps start,
//! stop, enable or install.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use ccm_host::Host;

use super::systemd::UNIT_DIRECTORIES;
use super::{Action, Order};

const MAX_UNIT: u64 = 1 << 20;

/// Whether a service will run, and whether it will start at boot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Outlook {
    pub(super) running: bool,
    pub(super) enabled: bool,
}

/// The services that a preview has decided about.
#[derive(Debug, Default)]
pub(super) struct PredictedServices(Mutex<HashMap<String, Outlook>>);

impl Clone for PredictedServices {
    fn clone(&self) -> Self {
        Self(Mutex::new(self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()))
    }
}

impl PredictedServices {
    pub(super) fn get(&self, service: &str) -> Option<Outlook> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(service).copied()
    }

    /// Records what an action makes of a service.
    pub(super) fn record(&self, action: &Action, now: Outlook) {
        let mut services = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let outlook = services.entry(action.service.clone()).or_insert(now);
        match action.order {
            Order::Start | Order::Restart | Order::Reload => outlook.running = true,
            Order::Stop => outlook.running = false,
            Order::Enable => outlook.enabled = true,
            Order::Disable => outlook.enabled = false,
        }
    }
}

/// A unit file that earlier steps of the preview would write, as systemd would
/// see it: not running, and started at boot only if nothing has to enable it.
pub(super) fn new_unit(host: &Host, service: &str) -> Option<Outlook> {
    let text = unit_text(host, service)?;
    let can_be_enabled = text.lines().any(|line| line.trim() == "[Install]");
    // A unit that cannot be enabled counts as one that is.
    Some(Outlook { running: false, enabled: !can_be_enabled })
}

/// Whether the unit file, as earlier steps of the preview leave it, says how to
/// reload the service. Drop-ins are not looked at.
pub(super) fn has_reload(host: &Host, service: &str) -> bool {
    unit_text(host, service).is_some_and(|text| says_how_to_reload(&text))
}

fn says_how_to_reload(unit: &str) -> bool {
    let settings = unit.lines().filter_map(|line| line.split_once('='));
    settings.map(|(name, value)| (name.trim(), value.trim())).any(|setting| match setting {
        ("ExecReload", command) => !command.is_empty(),
        setting => setting == ("Type", "notify-reload"),
    })
}

/// The file that a unit comes from.
fn unit_text(host: &Host, service: &str) -> Option<String> {
    unit_names(service).into_iter().find_map(|name| {
        let read =
            |directory: &&str| host.read_text(&Path::new(directory).join(&name), MAX_UNIT).ok();
        UNIT_DIRECTORIES.iter().find_map(read).map(|(text, _)| text)
    })
}

/// The files that a unit can come from.
fn unit_names(service: &str) -> Vec<String> {
    let has_suffix = service.rsplit_once('.').is_some_and(|(_, suffix)| {
        matches!(suffix, "service" | "socket" | "timer" | "path" | "target" | "mount" | "slice")
    });
    let full = if has_suffix { service.to_owned() } else { format!("{service}.service") };
    let template = full
        .split_once('@')
        .and_then(|(name, rest)| Some(format!("{name}@.{}", rest.rsplit_once('.')?.1)));
    std::iter::once(full).chain(template).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_say_how_they_reload() {
        for (unit, can_reload) in [
            ("[Service]\nExecStart=/bin/a\n", false),
            ("[Service]\nExecReload=\n", false),
            ("[Service]\n# ExecReload=/bin/a\n", false),
            ("[Service]\nExecReload = /bin/kill -HUP $MAINPID\n", true),
            ("[Service]\nType=notify\n", false),
            ("[Service]\nType=notify-reload\n", true),
            ("", false),
        ] {
            assert_eq!(says_how_to_reload(unit), can_reload, "{unit}");
        }
    }

    #[test]
    fn units_come_from_files_of_their_name_or_their_template() {
        for (service, names) in [
            ("nginx", &["nginx.service"][..]),
            ("nginx.service", &["nginx.service"]),
            ("backup.timer", &["backup.timer"]),
            ("a.b", &["a.b.service"]),
            ("getty@tty1", &["getty@tty1.service", "getty@.service"]),
            ("x@1.socket", &["x@1.socket", "x@.socket"]),
        ] {
            assert_eq!(unit_names(service), names, "{service}");
        }
    }
}
