//! The configuration as its vectors say.

use std::sync::Arc;

use ccm_agent::config::{Config, LogLevel};
use ccm_host::{Cancel, Registry, System};
use ccm_nats::{ContextChoice, Nats};
use ccm_yaml::Source;
use serde_json::{Value, json};
use vectors::Vectors;

#[test]
fn agent_config_conformance() {
    let nats = Nats::new(ContextChoice::default(), "agent");
    let host = System::default().with_fetch(Arc::new(nats)).begin(Cancel::default());
    let here = |case: &Value| case["op"] == "agent_config";
    Vectors::new("registration.jsonl", env!("CARGO_MANIFEST_DIR")).only(here).run(|case| {
        let text = case["input"].as_str().unwrap_or_default();
        let (config, findings) = Config::parse(&Source::new("config.yaml", text), host.fetchers());
        let messages: Vec<&str> = findings.iter().map(|found| found.message.as_str()).collect();
        match (config, case["want_error"] == true) {
            (None, true) => Ok(()),
            (Some(config), false) if shown(&config) == case["want"] => Ok(()),
            (Some(config), _) => Err(shown(&config).to_string()),
            (None, false) => Err(messages.join("; ")),
        }
    });
}

fn shown(config: &Config) -> Value {
    json!({
        "manifests": config.manifests,
        "interval": config.interval.as_nanos() as u64,
        "health_check_interval": config.health_check_interval.as_nanos() as u64,
        "external_data_url": config.external_data_url.clone().unwrap_or_default(),
        "cache_dir": config.cache_dir,
        "monitor_port": config.monitor_port,
        "nats_context": config.nats_context,
        "log_level": match config.log_level {
            LogLevel::Debug => "debug",
            LogLevel::Info => "info",
            LogLevel::Warn => "warn",
            LogLevel::Error => "error",
        },
        "registration": match config.registration {
            None => "",
            Some(Registry::Nats) => "nats",
            Some(Registry::JetStream) => "jetstream",
        },
    })
}
