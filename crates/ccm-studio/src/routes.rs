//! Routes requests to handlers.

use std::sync::Arc;
use std::time::Instant;

use ccm_http::{BodyError, Bytes, Method, Request, RequestBody, Response, StatusCode, header};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::app::App;
use crate::auth::{Exchange, WAIT};
use crate::error::{ApiError, ApiResult, json_response};
use crate::{
    assets, data, edit, facts, files, guard, history, names, runs, template, texts, watch,
};

const API: &str = "/api/v1/";
/// Bytes of a request from someone who has no key yet.
const MAX_SESSION: usize = 1024;

/// Answers a request, and logs that it did: never bodies, keys or queries.
pub(crate) async fn handle(app: Arc<App>, request: Request) -> Response {
    let started = Instant::now();
    let id = app.begin_request();
    let is_api = request.path.starts_with("/api/");
    let (method, path) = (request.method.clone(), request.path.clone());
    let answer = answer(&app, request, is_api).await;
    let response = answer.unwrap_or_else(|error| {
        if error.status == StatusCode::INTERNAL_SERVER_ERROR {
            tracing::error!(request = id, "{}", error.message);
        }
        let (is_method, is_unauthorized) =
            (error.code == "method", error.status == StatusCode::UNAUTHORIZED);
        let allowed = error.message.clone();
        let mut response = error.into_response(&id);
        if is_method {
            let allowed = allowed.strip_prefix("only ").unwrap_or_default();
            let allowed = allowed.strip_suffix(" can be used here").unwrap_or_default();
            response = response.with(header::ALLOW, allowed);
        }
        if is_unauthorized {
            response = response.with(header::WWW_AUTHENTICATE, "Bearer");
        }
        response
    });
    let time = started.elapsed();
    tracing::info!(%method, path, status = response.status.as_u16(), ?time, "request");
    guard::add_policy(response, is_api)
}

async fn answer(app: &Arc<App>, request: Request, is_api: bool) -> ApiResult<Response> {
    guard::check(&request, is_api)?;
    if request.method == Method::OPTIONS {
        return Err(assets::method("GET, POST, PUT, DELETE"));
    }
    let Some(path) = request.path.strip_prefix(API).map(str::to_owned) else {
        if is_api {
            return Err(ApiError::not_found("such request"));
        }
        return assets::serve(&request, app.settings.assets.as_ref());
    };
    if path == "session" {
        return session(app, request).await;
    }
    check_key(app, &request).await?;
    if app.is_stopping() {
        return Err(ApiError::stopping());
    }
    route(app, &path, request).await
}

async fn route(app: &Arc<App>, path: &str, request: Request) -> ApiResult<Response> {
    let (first, rest) = path.split_once('/').unwrap_or((path, ""));
    let has_rest = path.contains('/');
    match (first, has_rest) {
        ("studio", false) => {
            only(&request, &[Method::GET])?;
            Ok(texts::studio(app))
        }
        ("types", false) => {
            only(&request, &[Method::GET])?;
            Ok(texts::types(app, &request))
        }
        ("files", false) => {
            only(&request, &[Method::GET])?;
            app.work(|app, cancel| files::list(app, &cancel)).await
        }
        ("files", true) => {
            only(&request, &[Method::GET, Method::PUT])?;
            let place = place(rest)?;
            if request.method == Method::GET {
                return app.work(move |app, _| files::read(app, &place)).await;
            }
            let condition = files::Condition::of(&request)?;
            let body = json_body(request).await?;
            app.work(move |app, _| files::write(app, &place, &condition, parse(&body)?)).await
        }
        ("check", false) => post(app, request, texts::check).await,
        ("form", false) => post(app, request, texts::form).await,
        ("ensure", false) => post(app, request, texts::ensure).await,
        ("graph", false) => post(app, request, texts::graph).await,
        ("data", false) => post(app, request, data::data).await,
        ("template", false) => post(app, request, template::template).await,
        ("edit", false) => post(app, request, edit::edit).await,
        ("yaml", false) => post(app, request, edit::yaml).await,
        ("names", false) => {
            only(&request, &[Method::GET])?;
            app.work(|app, _| Ok(names::list(app))).await
        }
        ("facts", false) => {
            only(&request, &[Method::GET])?;
            let query = request.query.clone();
            app.work(move |app, _| facts::list(app, &query)).await
        }
        ("runs", false) => {
            only(&request, &[Method::GET, Method::POST])?;
            if request.method == Method::GET {
                return Ok(app.runs.list());
            }
            let body = json_body(request).await?;
            let shared = Arc::clone(app);
            app.work(move |_, _| runs::start(&shared, parse(&body)?)).await
        }
        ("runs", true) => match rest.strip_suffix("/events") {
            Some(id) => {
                only(&request, &[Method::GET])?;
                runs::events(app, id, request.header("last-event-id"))
            }
            None => {
                only(&request, &[Method::GET, Method::DELETE])?;
                match request.method {
                    Method::DELETE => app.runs.stop(rest),
                    _ => app.runs.show(rest),
                }
            }
        },
        ("history", false) => {
            only(&request, &[Method::GET])?;
            app.work(|app, _| Ok(history::list(app))).await
        }
        ("history", true) => {
            let id = |text: &str| decode(text).ok_or_else(|| ApiError::malformed("no such id"));
            if let Some(run) = rest.strip_suffix("/undo") {
                only(&request, &[Method::POST])?;
                let run = id(run)?;
                let Some(run) = run.strip_prefix("state:").map(str::to_owned) else {
                    return Err(ApiError::not_found("run of the state directory with this id"));
                };
                let body = json_body(request).await?;
                let shared = Arc::clone(app);
                return app.work(move |_, _| runs::undo(&shared, &run, parse(&body)?)).await;
            }
            only(&request, &[Method::GET])?;
            let id = id(rest)?;
            app.work(move |app, _| history::show(app, &id)).await
        }
        ("watch", false) => {
            only(&request, &[Method::GET])?;
            Ok(watch::watch(app))
        }
        _ => Err(ApiError::not_found("such request")),
    }
}

/// A POST with a JSON body, answered by a function that does work.
async fn post<T: DeserializeOwned + 'static>(
    app: &Arc<App>,
    request: Request,
    answer: fn(&App, &ccm_host::Cancel, &T) -> ApiResult<Response>,
) -> ApiResult<Response> {
    only(&request, &[Method::POST])?;
    let body = json_body(request).await?;
    app.work(move |app, cancel| answer(app, &cancel, &parse(&body)?)).await
}

pub(crate) fn only(request: &Request, allowed: &[Method]) -> ApiResult<()> {
    if allowed.contains(&request.method) {
        return Ok(());
    }
    let names: Vec<&str> = allowed.iter().map(Method::as_str).collect();
    Err(assets::method(&names.join(", ")))
}

/// The body of a request that must be JSON.
pub(crate) async fn json_body(request: Request) -> ApiResult<Bytes> {
    let content_type = request.header(header::CONTENT_TYPE).unwrap_or_default();
    let kind = content_type.split(';').next().unwrap_or_default().trim();
    if !kind.eq_ignore_ascii_case("application/json") {
        let status = StatusCode::UNSUPPORTED_MEDIA_TYPE;
        return Err(ApiError::new(status, "media_type", "the body must be application/json"));
    }
    read(request.body).await
}

async fn read(body: RequestBody) -> ApiResult<Bytes> {
    body.read().await.map_err(|error| match error {
        BodyError::TooLarge(_) => {
            ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", error.to_string())
        }
        BodyError::TooSlow(_) | BodyError::Incomplete => ApiError::malformed(error.to_string()),
    })
}

/// Reads JSON. What is wrong is said without repeating what was sent.
pub(crate) fn parse<T: DeserializeOwned>(body: &[u8]) -> ApiResult<T> {
    serde_json::from_slice(body).map_err(|error| {
        let text = error.to_string();
        if text.starts_with("unknown field") {
            return ApiError::new(StatusCode::BAD_REQUEST, "unknown_field", text);
        }
        let (line, column) = (error.line(), error.column());
        let what = match error.classify() {
            serde_json::error::Category::Data => "the request does not have the expected form",
            _ => "the body is not JSON",
        };
        ApiError::malformed(format!("{what} (line {line}, column {column})"))
    })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SessionRequest {
    token: String,
}

/// The key that a link was exchanged for.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Session {
    key: String,
}

/// Exchanges the token of a link for a key.
async fn session(app: &Arc<App>, mut request: Request) -> ApiResult<Response> {
    only(&request, &[Method::POST])?;
    request.body = request.body.at_most(MAX_SESSION);
    let SessionRequest { token } = parse(&json_body(request).await?)?;
    let denied = |code, message: &str| ApiError::new(StatusCode::UNAUTHORIZED, code, message);
    let error = match app.auth.exchange(&token, &app.settings.host, Instant::now()) {
        Exchange::Key(key) => {
            app.opened_session();
            app.note_activity();
            return Ok(json_response(StatusCode::OK, &Session { key }));
        }
        Exchange::Used => {
            (app.settings.tell)(
                "someone tried to use a link of this studio a second time".to_owned(),
            );
            denied("token_used", "this link was used before")
        }
        Exchange::Expired => denied("token_expired", "this link is too old"),
        Exchange::Unknown => wrong_key(),
    };
    slow_down(app).await;
    Err(error.hint("get a new link: press Enter where ccm studio runs, or start it again"))
}

fn wrong_key() -> ApiError {
    ApiError::new(StatusCode::UNAUTHORIZED, "key_wrong", "this key is unknown")
}

async fn slow_down(app: &App) {
    if app.auth.wrong(Instant::now()) {
        tokio::time::sleep(WAIT).await;
    }
}

async fn check_key(app: &App, request: &Request) -> ApiResult<()> {
    let hint = "open the link that ccm studio has printed";
    let Some(value) = request.headers.get(header::AUTHORIZATION) else {
        let message = "this request has no key";
        return Err(ApiError::new(StatusCode::UNAUTHORIZED, "key_missing", message).hint(hint));
    };
    let key = value.to_str().ok().and_then(|value| value.strip_prefix("Bearer "));
    if key.is_some_and(|key| app.auth.is_key(key)) {
        request.know_client();
        app.note_activity();
        return Ok(());
    }
    slow_down(app).await;
    Err(wrong_key().hint(hint))
}

/// The place of a file, from the rest of a path.
fn place(encoded: &str) -> ApiResult<String> {
    let decoded = decode(encoded).ok_or_else(|| ApiError::malformed("this is not a file name"))?;
    check_place(&decoded)?;
    Ok(decoded)
}

/// Refuses a place that is not one beneath the directory.
pub(crate) fn check_place(place: &str) -> ApiResult<()> {
    match ccm_host::tree_place(place) {
        Some(_) => Ok(()),
        None => {
            Err(ApiError::forbidden("outside", "this is not the name of a file in the directory"))
        }
    }
}

/// Resolves percent signs; `None` if the result is not text.
pub(crate) fn decode(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let mut digit = || char::from(rest.next()?).to_digit(16);
        bytes.push((digit()? * 16 + digit()?) as u8);
    }
    String::from_utf8(bytes).ok()
}

/// The value of a parameter in a query.
pub(crate) fn parameter(query: &str, name: &str) -> Option<String> {
    query.split('&').find_map(|pair| {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        (key == name).then(|| decode(&value.replace('+', " ")))?
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percent_signs_are_resolved() {
        assert_eq!(decode("a%20b/c%C3%A9").as_deref(), Some("a b/cé"));
        assert_eq!(decode("%2e%2e/x").as_deref(), Some("../x"));
        for bad in ["%", "%2", "%zz", "%ff"] {
            assert_eq!(decode(bad), None, "{bad}");
        }
        assert_eq!(parameter("a=1&query=x%3Dy+z&b", "query").as_deref(), Some("x=y z"));
        assert_eq!(parameter("a=1", "query"), None);
    }

    #[test]
    fn places_cannot_leave_the_directory() {
        for bad in ["", "/etc/passwd", "..", "../x", "a/../../x", "a//b", "%2e%2e/x", "a%00b"] {
            assert!(place(bad).is_err(), "{bad}");
        }
        assert_eq!(place("site/web.yaml").unwrap(), "site/web.yaml");
    }
}
