//! The page's files, which the build script put into the binary, compressed once at build time. They hold
//! nothing of the person's, so they need no login.
//!
//! Never reads a file at run time.

use axum::body::Body;
use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};

use super::Problem;

/// One file with its compressed forms, where they are smaller.
struct Asset {
    path: &'static str,
    etag: &'static str,
    plain: &'static [u8],
    brotli: Option<&'static [u8]>,
    gzip: Option<&'static [u8]>,
}

include!(concat!(env!("OUT_DIR"), "/assets.rs"));

/// Names under this carry a hash of their content.
const IMMUTABLE: &str = "assets/";

/// Any path that is no route: a file, or the page itself for an address made up by the page.
pub async fn serve(request: Request) -> Response {
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        return Problem::new(StatusCode::METHOD_NOT_ALLOWED, "Files can only be read.")
            .into_response();
    }
    let path = request.uri().path().trim_start_matches('/');
    let found = find(path).or_else(|| {
        let is_page = !path.starts_with(IMMUTABLE) && !path.contains('.');
        is_page.then(|| find("index.html")).flatten()
    });
    match found {
        Some(asset) => answer(asset, request.headers(), *request.method() == Method::HEAD),
        None => Problem::new(StatusCode::NOT_FOUND, "There is no such file.").into_response(),
    }
}

fn find(path: &str) -> Option<&'static Asset> {
    ASSETS
        .binary_search_by(|asset| asset.path.cmp(path))
        .ok()
        .map(|at| &ASSETS[at])
}

fn answer(asset: &'static Asset, asked: &HeaderMap, head: bool) -> Response {
    let cache = if asset.path.starts_with(IMMUTABLE) {
        "public, max-age=31536000, immutable"
    } else {
        "no-cache"
    };
    let mut headers = HeaderMap::new();
    headers.insert(header::ETAG, HeaderValue::from_static(asset.etag));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static(cache));
    headers.insert(header::VARY, HeaderValue::from_static("accept-encoding"));
    let known = asked
        .get_all(header::IF_NONE_MATCH)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .any(|tag| tag.trim().trim_start_matches("W/") == asset.etag);
    if known {
        return (StatusCode::NOT_MODIFIED, headers).into_response();
    }
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static(kind(asset.path)),
    );
    let (bytes, encoding) = match (asset.brotli, asset.gzip) {
        (Some(bytes), _) if accepts(asked, "br") => (bytes, Some("br")),
        (_, Some(bytes)) if accepts(asked, "gzip") => (bytes, Some("gzip")),
        _ => (asset.plain, None),
    };
    if let Some(encoding) = encoding {
        headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static(encoding));
    }
    headers.insert(header::CONTENT_LENGTH, bytes.len().into());
    let body = if head {
        Body::empty()
    } else {
        Body::from(bytes)
    };
    (headers, body).into_response()
}

/// Whether the asker takes this encoding; `q=0` means that it does not.
fn accepts(asked: &HeaderMap, encoding: &str) -> bool {
    asked
        .get_all(header::ACCEPT_ENCODING)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .any(|entry| {
            let mut parts = entry.split(';').map(str::trim);
            parts.next() == Some(encoding) && !parts.any(|part| matches!(part, "q=0" | "q=0.0"))
        })
}

fn kind(path: &str) -> &'static str {
    match path.rsplit_once('.').map(|(_, ending)| ending) {
        Some("html") => "text/html; charset=utf-8",
        Some("js" | "mjs") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("json" | "map") => "application/json",
        Some("webmanifest") => "application/manifest+json",
        Some("svg") => "image/svg+xml",
        Some("png") => "image/png",
        Some("ico") => "image/x-icon",
        Some("woff2") => "font/woff2",
        Some("wasm") => "application/wasm",
        Some("txt") => "text/plain; charset=utf-8",
        Some(_) | None => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(encoding: &'static str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static(encoding));
        headers
    }

    #[test]
    fn the_page_is_there_and_the_table_is_sorted() {
        assert!(find("index.html").is_some());
        assert!(ASSETS.is_sorted_by_key(|asset| asset.path));
    }

    #[test]
    fn an_encoding_refused_by_weight_is_not_sent() {
        assert!(accepts(&asked("gzip, deflate, br"), "br"));
        assert!(!accepts(&asked("gzip, br;q=0"), "br"));
        assert!(!accepts(&asked("gzip"), "br"));
    }
}
