//! `purplemux audit`: who has answered what, when and from where, as the server wrote it down.

use anyhow::Result;

use super::Common;
use super::client::{Client, block_on, plain, print};
use crate::store::AnswerRow;

/// Its options.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// How many
    #[arg(short, long, value_name = "N", default_value_t = 50)]
    most: u32,
    #[command(flatten)]
    common: Common,
}

/// Runs it.
///
/// # Errors
/// No server runs.
pub fn run(options: &Options) -> Result<()> {
    let client = Client::new(&options.common.home()?);
    let path = format!("/api/answers?most={}", options.most);
    let rows: Vec<AnswerRow> = block_on(client.get(&path))?;
    if options.common.json {
        return print(&serde_json::to_string(&rows)?);
    }
    for row in rows {
        print(&line(&row))?;
    }
    Ok(())
}

fn line(row: &AnswerRow) -> String {
    let at = jiff::Timestamp::from_millisecond(row.at_ms)
        .unwrap_or_default()
        .to_zoned_datetime(jiff::tz::TimeZone::system())
        .strftime("%F %T")
        .to_string();
    let why = row.why.as_deref().unwrap_or_default();
    let text = format!(
        "{at} {:<7} {} ({}): {} in {} ({}) {why}",
        row.result, row.by, row.origin, row.what, row.title, row.asked
    );
    plain(text.trim_end())
}
