//! diskperf: a laboratory for disk subsystem performance.

mod arguments;
mod commands;
mod drawing;
mod listing;
mod output;
mod progress;

use arguments::{Arguments, Command};
use clap::Parser;
use std::process::ExitCode;

/// Measures storage, keeps what it measured, and compares it.
fn main() -> ExitCode {
    let Arguments { store, command } = Arguments::parse();
    let store = store.as_deref();
    let outcome = match command {
        Command::Run(run) => commands::run(&run, store),
        Command::Compare(compare) => commands::compare(&compare, store),
        Command::Explain(explain) => commands::explain(&explain, store),
        Command::Reproduce(reproduce) => commands::reproduce(&reproduce),
        Command::Tune(tune) => commands::tune(&tune, store),
        Command::Report(report) => commands::report(&report, store),
        Command::Calculate(calculate) => commands::calculate(&calculate),
        Command::List(list) => commands::list(&list, store),
        Command::Show(show) => commands::show(&show, store),
        Command::Export(export) => commands::export(&export, store),
        Command::Clean(clean) => commands::clean(&clean, store),
    };
    outcome.unwrap_or_else(|error| {
        output::say(&error.to_string());
        ExitCode::from(error.exit_code())
    })
}
