//! `vault-tools log`: past calls and their outcomes.

use vault_tools::{Approval, Record, ToolStats, log_stats, read_log};

use crate::{CliResult, Out, sanitize_line, shortened};

use super::args::LogArgs;
use super::settings;
use crate::VaultArgs;

/// The maximum characters of a call's arguments in the table; `--json` prints all of them.
const LONGEST_ARGUMENTS: usize = 80;

pub fn log(vault_args: &VaultArgs, args: &LogArgs, out: &mut Out) -> CliResult {
    if args.output.schema {
        return if args.stats {
            out.list_schema::<ToolStats>(&args.output)
        } else {
            out.list_schema::<Record>(&args.output)
        };
    }
    let vault = settings::open(vault_args)?;
    let records = read_log(vault.state())?;
    if args.stats {
        return out.list(args.output.format(), &log_stats(&records), |out, rows| {
            let width = rows.iter().map(|row| row.tool.len()).max().unwrap_or(4).max(4);
            let head = format!("{:width$}  calls  failures  refusals  mean ms  max ms", "tool");
            let head = out.paint.bold(&head);
            out.line(&head)?;
            for row in rows {
                out.line(&format!(
                    "{:width$}  {:>5}  {:>8}  {:>8}  {:>7.1}  {:>6}",
                    sanitize_line(&row.tool),
                    row.calls,
                    row.failures,
                    row.refusals,
                    row.mean_ms,
                    row.max_ms
                ))?;
            }
            Ok(())
        });
    }
    let first = args.limit.map_or(0, |limit| records.len().saturating_sub(limit));
    out.list(args.output.format(), &records[first..], |out, rows| {
        for row in rows {
            let how = match (row.decision, &row.error) {
                (Approval::Denied, _) => out.paint.bad("refused"),
                (_, Some(_)) => out.paint.bad("failed"),
                (Approval::Edited, None) => "done, edited".to_string(),
                (_, None) if !row.left_out.is_empty() => "done in part".to_string(),
                (_, None) => "done".to_string(),
            };
            let why = row.error.as_deref().unwrap_or_default();
            let time =
                row.timestamp.split_once('.').map_or(row.timestamp.clone(), |(seconds, _)| format!("{seconds}Z"));
            let arguments = shortened(&row.arguments.to_string(), LONGEST_ARGUMENTS);
            let line =
                format!("{time}  {how}  {} {arguments}  {} ms  {}", row.tool, row.duration_ms, sanitize_line(why));
            out.line(line.trim_end())?;
        }
        Ok(())
    })
}
