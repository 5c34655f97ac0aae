//! Queries of the registry.

use super::{REGISTRY_PREFIX, check_address, check_name};

/// Which entries to look up. An open part matches anything.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct RegistryQuery {
    cluster: Option<String>,
    protocol: Option<String>,
    service: Option<String>,
    address: Option<String>,
}

impl RegistryQuery {
    /// A query for cluster, protocol, service and address. `*` and the empty
    /// text match anything.
    ///
    /// # Errors
    ///
    /// Returns an error for a text that is neither a name nor an address: it
    /// could widen the filter.
    ///
    /// ```
    /// use ccm_model::RegistryQuery;
    ///
    /// let query = RegistryQuery::new("production", "http", "web", "*").unwrap();
    /// assert_eq!(query.filter_subject(), "choria.ccm.registration.v1.production.http.web.*.*");
    /// assert!(RegistryQuery::new("a.>", "*", "*", "*").is_err());
    /// ```
    pub fn new(
        cluster: &str,
        protocol: &str,
        service: &str,
        address: &str,
    ) -> Result<Self, String> {
        let name = |what: &str, text: &str| match text {
            "" | "*" => Ok(None),
            name => check_name(what, name).map(|()| Some(name.to_owned())),
        };
        let address = match address {
            "" | "*" => None,
            address => check_address(address).map(|()| Some(address.to_owned()))?,
        };
        Ok(Self {
            cluster: name("cluster", cluster)?,
            protocol: name("protocol", protocol)?,
            service: name("service", service)?,
            address,
        })
    }

    /// The arguments of [`RegistryQuery::new`] for the same query.
    pub fn parts(&self) -> [&str; 4] {
        let part = |part| Option::as_deref(part).unwrap_or_default();
        [part(&self.cluster), part(&self.protocol), part(&self.service), part(&self.address)]
    }

    /// The subject that matches these entries and no others.
    pub fn filter_subject(&self) -> String {
        let part = |part: &Option<String>| part.clone().unwrap_or_else(|| "*".to_owned());
        let (cluster, protocol) = (part(&self.cluster), part(&self.protocol));
        let (service, address) = (part(&self.service), part(&self.address).replace('.', "_"));
        format!("{REGISTRY_PREFIX}.{cluster}.{protocol}.{service}.{address}.*")
    }
}

/// The parsed subject of an entry.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct RegistrySubject {
    /// The cluster that the service belongs to.
    pub cluster: String,
    /// The protocol that it speaks.
    pub protocol: String,
    /// The name of the service.
    pub service: String,
    /// Its address.
    pub address: String,
}

impl RegistrySubject {
    /// Reads a subject; `None` if it has too few tokens.
    pub fn parse(subject: &str) -> Option<Self> {
        let tokens: Vec<&str> = subject.split('.').collect();
        if tokens.len() < 9 {
            return None;
        }
        let [cluster, protocol, service, address] = tokens.get(4..8)? else { return None };
        Some(Self {
            cluster: (*cluster).to_owned(),
            protocol: (*protocol).to_owned(),
            service: (*service).to_owned(),
            address: address.replace('_', "."),
        })
    }
}
