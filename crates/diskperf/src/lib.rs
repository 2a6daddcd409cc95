//! The command line: `diskperf` is a binary around [`run`], and
//! `python -m diskperf` the same from Python.

pub mod again;
mod arguments;
mod commands;
mod drawing;
mod listing;
mod output;
mod progress;
mod signals;

use arguments::{Arguments, Command};
use clap::Parser;
use std::ffi::OsString;
use std::process::ExitCode;

/// Does what a command line says, and gives the process's exit code. The first
/// word is the name of the program. Help and a command line that cannot be
/// understood end the process.
pub fn run(words: &[OsString]) -> u8 {
    let Arguments { store, mut command } = Arguments::parse_from(words);
    if let Command::Run(run) = &mut command {
        let plain = words.iter().map(|word| word.to_string_lossy().into_owned());
        run.command_line = plain.collect();
    }
    let store = store.as_deref();
    let outcome = signals::outlive_file_size_limit().and_then(|()| match command {
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
    });
    match outcome {
        Ok(code) => u8::from(code != ExitCode::SUCCESS),
        Err(error) => {
            let error = error.or_limit();
            output::say(&error.to_string());
            error.exit_code()
        }
    }
}
