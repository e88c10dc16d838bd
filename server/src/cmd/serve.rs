//! `purplemux serve`: puts the parts together, listens, and takes them apart again. The order matters:
//! the lock before anything is written, the listeners before anything slow.

use std::fs;
use std::io::{IsTerminal as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixListener;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow, bail};
use purplemux_core::HostId;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, Layer as _};

use super::{Common, Usage};
use crate::conversations::Conversations;
use crate::effects::journal;
use crate::home::{Home, random_hex, write_atomic};
use crate::logfile::{self, LogFile};
use crate::pane::Panes;
use crate::push::Push;
use crate::settings::Settings;
use crate::tabs::Tabs;
use crate::web::auth::{Auth, Names};
use crate::web::{App, listen as doors, router};
use crate::{clock, hub, ingest, push, store, sys, tmux};

/// The port if none is asked for.
const PORT: u16 = 8022;

/// How many ports above it are tried when it is taken.
const PORTS_TRIED: u16 = 50;

/// How long open connections may take to end after a signal.
const STOP_WITHIN: Duration = Duration::from_secs(2);

/// Its options.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// Listen on this address
    #[arg(long, value_name = "IP", default_value_t = IpAddr::V4(Ipv4Addr::LOCALHOST))]
    host: IpAddr,
    /// Listen on this port (default: 8022, or the next free one; 0: any)
    #[arg(long)]
    port: Option<u16>,
    /// Open the page in a browser
    #[arg(long)]
    open: bool,
    /// Admit this host name, of a proxy in front (may be repeated)
    #[arg(long, value_name = "NAME")]
    allow_host: Vec<String>,
    /// The address under which a proxy in front shows the page
    #[arg(long, value_name = "URL")]
    public_url: Option<String>,
    /// Allow plain http beyond this machine: anyone on the way can read and type
    #[arg(long)]
    insecure_http: bool,
    #[command(flatten)]
    common: Common,
}

/// Runs until a signal.
///
/// # Errors
/// The home, the port or the database can't be had.
pub fn run(options: &Options) -> Result<()> {
    if !options.host.is_loopback() && !options.insecure_http {
        return Err(Usage(format!(
            "Listening on {} would send everything over the network in the clear; put a proxy with https in front and use --allow-host, or add --insecure-http.",
            options.host
        ))
        .into());
    }
    let home = options.common.home()?.prepare()?;
    let _lock = home.lock()?;
    log_to(&home)?;
    let files_max = sys::raise_files();
    let (tcp, note) = listen(options.host, options.port)?;
    let address = tcp.local_addr().context("Can't tell our own port")?;
    let names = Names::new(
        address.port(),
        &options.allow_host,
        options.public_url.as_deref(),
        options.insecure_http,
    )
    .map_err(|error| Usage(error.to_string()))?;
    let unix = listen_unix(&home)?;
    if let Some(note) = note {
        eprintln!("purplemux: {note}");
    }
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("Can't start")?
        .block_on(serve(options, &home, names, files_max, tcp, unix))
}

fn listen(host: IpAddr, port: Option<u16>) -> Result<(TcpListener, Option<String>)> {
    let bind = |port| TcpListener::bind(SocketAddr::new(host, port));
    let taken = |error: &std::io::Error| error.kind() == std::io::ErrorKind::AddrInUse;
    if let Some(port) = port {
        return match bind(port) {
            Ok(tcp) => Ok((tcp, None)),
            Err(error) if taken(&error) => Err(anyhow!(
                "Port {port} on {host} is taken by another program; choose another with --port, or leave it out for the next free one."
            )),
            Err(error) => Err(error).with_context(|| format!("Can't listen on {host}:{port}")),
        };
    }
    for port in PORT..=PORT + PORTS_TRIED {
        match bind(port) {
            Ok(tcp) if port == PORT => return Ok((tcp, None)),
            Ok(tcp) => {
                return Ok((
                    tcp,
                    Some(format!(
                        "Port {PORT} is taken; listening on {port} instead."
                    )),
                ));
            }
            Err(error) if taken(&error) => {}
            Err(error) => {
                return Err(error).with_context(|| format!("Can't listen on {host}:{port}"));
            }
        }
    }
    bail!(
        "The ports {PORT} to {} on {host} are all taken; choose one with --port.",
        PORT + PORTS_TRIED
    )
}

fn listen_unix(home: &Home) -> Result<UnixListener> {
    let path = home.socket_to_bind()?;
    // We hold the lock, so a socket that is there belongs to nobody.
    match fs::remove_file(&path) {
        Ok(()) => {}
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        Err(error) => {
            return Err(error).with_context(|| format!("Can't replace {}", path.display()));
        }
    }
    let unix =
        UnixListener::bind(&path).with_context(|| format!("Can't listen on {}", path.display()))?;
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600))
        .with_context(|| format!("Can't close {} to other users", path.display()))?;
    Ok(unix)
}

/// Everything to `logs/server.log`, warnings to standard error too. `PURPLEMUX_LOG` filters.
fn log_to(home: &Home) -> Result<()> {
    let path = home.subdir("logs")?.join("server.log");
    let file = LogFile::open(path.clone(), logfile::BYTES_MAX)
        .with_context(|| format!("Can't write {}", path.display()))?;
    let filter =
        EnvFilter::try_from_env("PURPLEMUX_LOG").unwrap_or_else(|_| EnvFilter::new("info"));
    tracing_subscriber::registry()
        .with(
            tracing_subscriber::fmt::layer()
                .with_writer(Mutex::new(file))
                .with_ansi(false)
                .with_filter(filter),
        )
        .with(
            tracing_subscriber::fmt::layer()
                .with_writer(std::io::stderr)
                .with_ansi(std::io::stderr().is_terminal())
                .without_time()
                .with_target(false)
                .with_filter(EnvFilter::new("warn")),
        )
        .try_init()
        .context("Can't start the log")
}

async fn serve(
    options: &Options,
    home: &Home,
    names: Names,
    files_max: u64,
    tcp: TcpListener,
    unix: UnixListener,
) -> Result<()> {
    // Before anything can be stopped in the middle.
    let mut interrupted = signal(SignalKind::interrupt()).context("Can't wait for signals")?;
    let mut terminated = signal(SignalKind::terminate()).context("Can't wait for signals")?;
    let mut hung_up = signal(SignalKind::hangup()).context("Can't wait for signals")?;
    let port = tcp.local_addr().context("Can't tell our own port")?.port();
    let address = public_address(options, port);
    let (app, fleet) = assemble(home, names, address).await?;
    write_atomic(&home.path("port"), format!("{port}\n").as_bytes(), 0o600)?;

    tcp.set_nonblocking(true)?;
    unix.set_nonblocking(true)?;
    let tcp = tokio::net::TcpListener::from_std(tcp)?;
    let unix = tokio::net::UnixListener::from_std(unix)?;
    let stop = app.stopping.clone();
    let routes = router(Arc::clone(&app));
    let room = doors::Doors::new(files_max);
    let mut servers = tokio::task::JoinSet::new();
    servers.spawn(doors::tcp(tcp, routes.clone(), room, stop.clone()));
    servers.spawn(doors::unix(unix, routes, stop.clone()));

    tracing::info!(
        "purplemux {} serves {} on {}",
        env!("CARGO_PKG_VERSION"),
        home.dir().display(),
        app.address
    );
    announce(options, home, &app).await?;

    let stopped = tokio::select! {
        _ = interrupted.recv() => Ok(()),
        _ = terminated.recv() => Ok(()),
        // The terminal it was started in was closed.
        _ = hung_up.recv() => Ok(()),
        ended = servers.join_next() => Err(anyhow!("A listener has ended ({ended:?}).")),
    };
    tracing::info!("stopping");
    app.stopping.cancel();
    app.tasks.close();
    let quiet = async {
        app.tasks.wait().await;
        while servers.join_next().await.is_some() {}
    };
    if tokio::time::timeout(STOP_WITHIN, quiet).await.is_err() {
        tracing::warn!("some connections did not end in time");
    }
    app.hub.stop().await;
    app.tmux.close().await;
    if let Err(error) = fleet.await {
        tracing::warn!("the hub did not end well: {error}");
    }
    for path in [home.path("port"), home.socket_to_reach()] {
        if let Err(error) = fs::remove_file(&path)
            && error.kind() != std::io::ErrorKind::NotFound
        {
            tracing::warn!("can't remove {}: {error}", path.display());
        }
    }
    stopped
}

/// Starts all parts that do not listen.
async fn assemble(
    home: &Home,
    names: Names,
    address: String,
) -> Result<(Arc<App>, tokio::task::JoinHandle<()>)> {
    let store = store::open(&home.path("purplemux.db"))?;
    let host = host_name();
    let auth = Auth::open(store.clone(), &home.instance(), &home.cli_token()?).await?;
    let tmux = tmux::Handle::new(tmux::Config {
        host: HostId::from(host.as_str()),
        home: home.dir().to_owned(),
    });
    let (alerts, told) = push::channel();
    let started_ms = clock::wall_ms();
    let (hub, fleet) = hub::spawn(hub::Config {
        host: HostId::from(host.as_str()),
        home: home.dir().to_owned(),
        tmux: tmux.clone(),
        keep: Arc::new(store.clone()),
        journal: journal::Config {
            shelf: Arc::new(store.clone()),
            newest: store.newest_record().await?,
            text: journal_text(&store).await?,
            bounds: journal::Bounds::default(),
        },
        restored: store.badges().await?,
        alerts: alerts.clone(),
        claude_dirs: ingest::default_claude_dirs(),
    });
    let contact = push_contact(&store, &address).await?;
    let push = Push::start(home.dir(), contact, store.clone(), hub.snapshots(), told).await?;
    let answers = crate::answer::start(hub.clone(), tmux.clone(), store.clone());
    let files = crate::files::Files::start(home)?;
    let settings = Settings::start(store.clone()).await?;
    let tabs = Tabs::start(store.clone(), hub.clone(), tmux.clone()).await?;
    let (ended, mut endings) = mpsc::channel(16);
    let panes = Panes::new(tmux.clone(), ended);
    let layout = tabs.clone();
    crate::task::spawn("ended tabs", async move {
        while endings.recv().await.is_some() {
            layout.recheck().await;
        }
    });
    let app = Arc::new(App {
        auth,
        names,
        instance: home.instance(),
        host,
        address,
        epoch: random_hex::<8>(),
        started_ms,
        hub,
        alerts,
        push,
        answers,
        tabs,
        conversations: Conversations::default(),
        files,
        settings,
        store,
        tmux,
        claude: crate::claude::Handle::start(),
        home: home.dir().to_owned(),
        panes,
        stopping: CancellationToken::new(),
        tasks: TaskTracker::new(),
    });
    Ok((app, fleet))
}

/// Whether the journal holds prompts, answers and commands: `$PURPLEMUX_JOURNAL_TEXT`, else the setting
/// `journal.text`, else yes.
async fn journal_text(store: &store::Store) -> Result<bool> {
    let wanted = match std::env::var("PURPLEMUX_JOURNAL_TEXT") {
        Ok(wanted) => Some(wanted),
        Err(_) => store.setting("journal.text").await?,
    };
    match wanted.as_deref() {
        None | Some("true" | "1") => Ok(true),
        Some("false" | "0") => Ok(false),
        // A word that is not understood must not write down what was meant to be left out.
        Some(odd) => {
            tracing::warn!("journal.text is {odd:?}, neither true nor false: texts are left out.");
            Ok(false)
        }
    }
}

/// By what push services may reach whoever runs this server: the setting `push.contact` (a `mailto:` or https
/// URL), else the public address, else a mail address that is nobody's.
async fn push_contact(store: &store::Store, address: &str) -> Result<String> {
    let chosen = store.setting("push.contact").await?;
    Ok(chosen.unwrap_or_else(|| {
        if address.starts_with("https://") {
            address.to_owned()
        } else {
            "mailto:purplemux@example.org".to_owned()
        }
    }))
}

/// What to open in a browser.
fn public_address(options: &Options, port: u16) -> String {
    if let Some(url) = &options.public_url {
        return url.trim_end_matches('/').to_owned();
    }
    let host = if options.host.is_unspecified() {
        IpAddr::V4(Ipv4Addr::LOCALHOST)
    } else {
        options.host
    };
    format!("http://{}", SocketAddr::new(host, port))
}

/// Says where the page is. On a terminal that is a sign-in link; a code never goes to a file or a pipe.
async fn announce(options: &Options, home: &Home, app: &App) -> Result<()> {
    let on_terminal = std::io::stdout().is_terminal();
    let mut line = format!(
        "purplemux serves {}/ (run `purplemux login` for a sign-in link)",
        app.address
    );
    if on_terminal || options.open {
        let (code, _) = app.auth.mint_code(clock::wall_ms()).await?;
        let link = format!("{}/#login={code}", app.address);
        if options.open {
            open_browser(home, &link)?;
        }
        if on_terminal {
            line = link;
        }
    }
    let mut out = std::io::stdout().lock();
    if let Err(error) = writeln!(out, "{line}").and_then(|()| out.flush()) {
        // Whoever started us does not listen; the server is there all the same.
        tracing::debug!("standard output: {error}");
    }
    Ok(())
}

/// Opens the link by way of a private file: a command line is readable by every user of the machine.
#[expect(
    clippy::disallowed_methods,
    reason = "once, when the person asks for it with --open"
)]
fn open_browser(home: &Home, link: &str) -> Result<()> {
    let file = home.path("open.html");
    let page = format!(
        "<!doctype html><meta charset=\"utf-8\"><meta http-equiv=\"refresh\" content=\"0;url={link}\"><title>purplemux</title>"
    );
    write_atomic(&file, page.as_bytes(), 0o600)?;
    let opened = Command::new("xdg-open")
        .arg(&file)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    match opened {
        Ok(mut child) => {
            std::thread::spawn(move || drop(child.wait()));
        }
        Err(error) => {
            eprintln!("purplemux: can't open a browser ({error}); open the link by hand.")
        }
    }
    Ok(())
}

fn host_name() -> String {
    let name = rustix::system::uname();
    name.nodename().to_string_lossy().into_owned()
}
