//! Puts the page into the binary: finds or builds its files and writes a table of them that
//! `web/assets.rs` includes. It never fails for want of Node: the binary then carries a page that says what
//! is missing, and so does the build's output.
//!
//! Where the files come from, first that applies: 1 `PURPLEMUX_WEB_DIST` (packagers, other machines),
//! 2 `web/dist` if it is newer than every source or there are no sources, 3 `npm ci` if needed and the
//! page's own build into `OUT_DIR`, 4 the page that says what is missing.

use std::collections::hash_map::DefaultHasher;
use std::fmt::Write as _;
use std::fs;
use std::hash::Hasher as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

fn main() {
    let out = PathBuf::from(env("OUT_DIR"));
    let web = Path::new(&env("CARGO_MANIFEST_DIR")).join("../web");
    println!("cargo::rerun-if-env-changed=PURPLEMUX_WEB_DIST");
    println!("cargo::rerun-if-changed=build.rs");
    let dist = match find(&web, &out) {
        Ok(dist) => dist,
        Err(missing) => {
            println!("cargo::warning=the page is not in this binary: {missing}");
            // A path that never exists makes cargo look again at the next build.
            println!("cargo::rerun-if-changed={}", out.join("never").display());
            placeholder(&out, &missing)
        }
    };
    fs::write(out.join("assets.rs"), table(&dist)).expect("OUT_DIR can be written");
}

fn env(name: &str) -> String {
    std::env::var(name).unwrap_or_default()
}

fn find(web: &Path, out: &Path) -> Result<PathBuf, String> {
    let given = env("PURPLEMUX_WEB_DIST");
    if !given.is_empty() {
        let given = PathBuf::from(given);
        println!("cargo::rerun-if-changed={}", given.display());
        return if given.join("index.html").is_file() {
            fs::canonicalize(&given).map_err(|error| error.to_string())
        } else {
            Err(format!(
                "PURPLEMUX_WEB_DIST={} has no index.html",
                given.display()
            ))
        };
    }
    let has_sources = web.join("package.json").is_file();
    let sources = sources(web);
    for source in &sources {
        println!("cargo::rerun-if-changed={}", source.display());
    }
    let dist = web.join("dist");
    if dist.join("index.html").is_file()
        && (!has_sources || changed(&dist.join("index.html")) >= newest(sources))
    {
        return fs::canonicalize(&dist).map_err(|error| error.to_string());
    }
    if !has_sources {
        return Err("there is neither web/dist nor web/package.json".to_owned());
    }
    build(web, out)
}

fn build(web: &Path, out: &Path) -> Result<PathBuf, String> {
    let installed = changed(&web.join("node_modules/.package-lock.json"));
    if installed < changed(&web.join("package-lock.json")) {
        npm(web, &["ci", "--no-audit", "--no-fund"])?;
    }
    let dist = out.join("web");
    let dist_arg = dist.to_str().ok_or("OUT_DIR is not UTF-8")?;
    npm(
        web,
        &["run", "build", "--", "--outDir", dist_arg, "--emptyOutDir"],
    )?;
    if dist.join("index.html").is_file() {
        Ok(dist)
    } else {
        Err("`npm run build` in web/ made no index.html".to_owned())
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "building the page is what this script is for"
)]
fn npm(web: &Path, arguments: &[&str]) -> Result<(), String> {
    let shown = format!("`npm {}` in web/", arguments.join(" "));
    let output = Command::new("npm")
        .args(arguments)
        .current_dir(web)
        .output()
        .map_err(|error| format!("{shown} can't be run ({error}); install Node.js with npm"))?;
    if output.status.success() {
        return Ok(());
    }
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    let tail: Vec<&str> = said.lines().rev().take(12).collect();
    for line in tail.iter().rev() {
        println!("cargo::warning=npm: {line}");
    }
    Err(format!("{shown} failed ({})", output.status))
}

/// What the page is made of: everything in `web` that no tool put there.
fn sources(web: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(web) else {
        return Vec::new();
    };
    entries
        .flatten()
        .filter(|entry| {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            !name.starts_with('.') && name != "node_modules" && name != "dist"
        })
        .map(|entry| entry.path())
        .collect()
}

/// The newest change of any of these, or of anything below them.
fn newest(mut open: Vec<PathBuf>) -> SystemTime {
    let mut newest = SystemTime::UNIX_EPOCH;
    while let Some(path) = open.pop() {
        newest = newest.max(changed(&path));
        if let Ok(entries) = fs::read_dir(&path) {
            open.extend(entries.flatten().map(|entry| entry.path()));
        }
    }
    newest
}

fn changed(path: &Path) -> SystemTime {
    fs::metadata(path)
        .and_then(|meta| meta.modified())
        .unwrap_or(SystemTime::UNIX_EPOCH)
}

fn placeholder(out: &Path, missing: &str) -> PathBuf {
    let dist = out.join("placeholder");
    let escaped = missing
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;");
    let page = format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>purplemux</title>\
         <h1>purplemux</h1><p>The server runs, but it was built without its page: {escaped}.</p>\
         <p>Install Node.js with npm and build again, or set PURPLEMUX_WEB_DIST to a built page.</p></html>"
    );
    fs::create_dir_all(&dist).expect("OUT_DIR can be written");
    fs::write(dist.join("index.html"), page).expect("OUT_DIR can be written");
    dist
}

/// A sorted table in Rust. `x.br` and `x.gz` beside `x` are its compressed forms.
fn table(dist: &Path) -> String {
    let mut files = Vec::new();
    let mut open = vec![dist.to_owned()];
    while let Some(dir) = open.pop() {
        for entry in fs::read_dir(&dir)
            .expect("the page's files can be listed")
            .flatten()
        {
            let path = entry.path();
            if path.is_dir() {
                open.push(path);
            } else {
                files.push(path);
            }
        }
    }
    files.sort();
    let mut rows = Vec::new();
    for file in &files {
        let name = file
            .strip_prefix(dist)
            .expect("it was found below")
            .to_str()
            .expect("the page's file names are UTF-8");
        let ending = file.extension().and_then(|ending| ending.to_str());
        if matches!(ending, Some("br" | "gz")) && files.contains(&file.with_extension("")) {
            continue;
        }
        let bytes = fs::read(file).expect("the page's files can be read");
        let mut hasher = DefaultHasher::new();
        hasher.write(&bytes);
        let beside = |ending: &str| {
            let mut path = file.clone().into_os_string();
            path.push(ending);
            match fs::metadata(&path) {
                Ok(meta) if meta.len() < bytes.len() as u64 => {
                    format!("Some(include_bytes!({path:?}))")
                }
                Ok(_) | Err(_) => "None".to_owned(),
            }
        };
        let row = format!(
            "    Asset {{ path: {name:?}, etag: \"\\\"{:016x}\\\"\", plain: include_bytes!({file:?}), brotli: {}, gzip: {} }},\n",
            hasher.finish(),
            beside(".br"),
            beside(".gz"),
        );
        rows.push((name.to_owned(), row));
    }
    rows.sort();
    let mut text = String::from("static ASSETS: &[Asset] = &[\n");
    for (_, row) in rows {
        write!(text, "{row}").expect("writing to a String can't fail");
    }
    text.push_str("];\n");
    text
}
