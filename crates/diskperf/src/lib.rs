//! Command line of diskperf. The binary `diskperf` calls [`run`], and `python -m diskperf` does the
//! same from Python.

mod arguments;
mod commands;
mod drawing;
mod listing;
mod output;
mod progress;
mod signals;
mod spared;

use arguments::{Arguments, Command, with_escaped_variants};
use clap::error::{ContextKind, ContextValue};
use clap::{CommandFactory, FromArgMatches};
use diskperf_catalogue::find_similar_names;
use diskperf_laboratory::{LaboratoryError, explain_open_file_limit, require_clocks, runs};
use spared::NamedFiles;
use std::ffi::OsString;
use std::io::{ErrorKind, Write};
use std::path::Path;

/// Returns the definition of the command line with all commands and arguments.
#[doc(hidden)]
pub fn command() -> clap::Command {
    Arguments::command()
}

/// Executes a command line and returns the exit code of the process. The first word is the name of
/// the program.
pub fn run(words: &[OsString]) -> u8 {
    let (Arguments { store, command }, named) = match parse_arguments(words) {
        Ok(understood) => understood,
        Err(error) => return report_usage_error(&error),
    };
    let command_line = words.iter().map(|word| word.to_string_lossy().into_owned());
    let command_line = command_line.collect();
    let store = store.as_deref();
    // There 1 means that something is slower, or that data was lost.
    let failures_are_2 = match &command {
        Command::Compare(it) => it.gate.fail_over.is_some(),
        Command::Ab(it) => it.gate.fail_over.is_some(),
        Command::Crash(_) => true,
        _ => false,
    };
    let timed = require_clocks().map_err(LaboratoryError::work);
    let checked = timed.and_then(|()| store.map_or(Ok(()), runs::check_store));
    let spared = checked.and_then(|()| named.reject_overwritten_inputs(store));
    let ready = spared.and_then(|()| signals::outlive_file_size_limit());
    let outcome = ready.and_then(|()| execute(command, command_line, store));
    match outcome {
        Ok(code) => code,
        Err(error) => {
            let error = explain_open_file_limit(error);
            output::print_message(&error_text(&error));
            match error.exit_code() {
                1 if failures_are_2 => 2,
                code => code,
            }
        }
    }
}

/// Formats an error. The text of several problems of a file separates them by empty lines, and each
/// of them begins with the name of the program.
fn error_text(error: &LaboratoryError) -> String {
    let severities = ["error: ", "warning: "];
    severities.iter().fold(error.to_string(), |text, severity| {
        text.replace(
            &format!("\n\n{severity}"),
            &format!("\n\ndiskperf: {severity}"),
        )
    })
}

/// Parses a command line and collects the paths in it.
fn parse_arguments(words: &[OsString]) -> Result<(Arguments, NamedFiles), clap::Error> {
    let mut definition = command();
    let matches = definition.try_get_matches_from_mut(with_escaped_variants(words));
    let mut matches = matches.map_err(|error| suggest_subcommand(error, &definition, words))?;
    let named = NamedFiles::from_matches(&definition, &matches);
    let arguments = Arguments::from_arg_matches_mut(&mut matches);
    let arguments = arguments.map_err(|error| error.format(&mut definition))?;
    Ok((arguments, named))
}

/// Adds the subcommands with a similar name to an error about an unknown one, such as `run` for
/// `rnu`. The names that clap suggests stay first.
fn suggest_subcommand(
    mut error: clap::Error,
    definition: &clap::Command,
    words: &[OsString],
) -> clap::Error {
    let Some(ContextValue::String(typed)) = error.get(ContextKind::InvalidSubcommand) else {
        return error;
    };
    if error.get(ContextKind::SuggestedSubcommand).is_some() {
        return error;
    }
    // The commands with subcommands come before the unknown word.
    let mut command = definition;
    for word in words.iter().map(|word| word.to_string_lossy()) {
        command = command.find_subcommand(&*word).unwrap_or(command);
    }
    let known = command.get_subcommands().map(clap::Command::get_name);
    let similar = find_similar_names(typed, known).into_iter();
    let similar: Vec<String> = similar.map(str::to_owned).collect();
    if !similar.is_empty() {
        error.insert(
            ContextKind::SuggestedSubcommand,
            ContextValue::Strings(similar),
        );
    }
    error
}

fn execute(
    command: Command,
    command_line: Vec<String>,
    store: Option<&Path>,
) -> Result<u8, LaboratoryError> {
    match command {
        Command::Run(run) => commands::run(&run, command_line, store),
        Command::Ab(ab) => commands::ab(&ab, &command_line, store),
        Command::Compare(compare) => commands::compare(&compare, store),
        Command::Explain(explain) => commands::explain(&explain, store),
        Command::Reproduce(reproduce) => commands::reproduce(&reproduce),
        Command::Record(record) => commands::record(&record),
        Command::Trace(trace) => commands::trace(&trace),
        Command::Replay(replay) => commands::replay(&replay, command_line, store),
        Command::Serve(serve) => commands::serve(&serve),
        Command::Crash(crash) => commands::crash(&crash, store),
        Command::Import(import) => commands::import(&import),
        Command::Tune(tune) => commands::tune(&tune, store),
        Command::Report(report) => commands::report(&report, store),
        Command::Calculate(calculate) => commands::calculate(&calculate),
        Command::List(list) => commands::list(&list, store),
        Command::Show(show) => commands::show(&show, store),
        Command::Export(export) => commands::export(&export, store),
        Command::Delete(delete) => commands::delete(&delete, store),
        Command::Clean(clean) => commands::clean(&clean, store),
        Command::Completions(completions) => commands::completions(completions.shell),
        Command::Man(man) => commands::man(&man.words),
    }
}

/// Prints the help, the version or a syntax error of the command line, and returns the exit code.
fn report_usage_error(error: &clap::Error) -> u8 {
    let code = error.exit_code() as u8;
    match error.print().and_then(|()| std::io::stdout().flush()) {
        Err(why) if code == 0 && why.kind() != ErrorKind::BrokenPipe => {
            output::print_message(&format!("cannot write to standard output: {why}"));
            1
        }
        _ => code,
    }
}
