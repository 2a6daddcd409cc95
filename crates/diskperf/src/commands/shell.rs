//! Shell completions and manual pages, generated from the definition of the command line.

use super::{CommandResult, DONE};
use clap::builder::{PossibleValue, PossibleValuesParser};
use clap::{Arg, Command, ValueHint};
use clap_complete::Shell;
use clap_mangen::Man;
use diskperf_battery::program::nearest_name;
use diskperf_battery::{Program, Suite};
use diskperf_catalogue::{Catalogue, Component};
use diskperf_laboratory::catalogue::{list_components, list_documents, list_systems};
use diskperf_laboratory::{LaboratoryError, Output};

/// Executes `diskperf completions`: prints completions for a shell.
pub(crate) fn completions(shell: Shell) -> CommandResult {
    let known = CompletionValues::new(shell)?;
    let mut script = Vec::new();
    clap_complete::generate(
        shell,
        &mut known.complete(crate::command()),
        "diskperf",
        &mut script,
    );
    Output::StandardOutput.write(&script)?;
    Ok(DONE)
}

/// Executes `diskperf man`: prints a manual page.
pub(crate) fn man(words: &[String]) -> CommandResult {
    let mut command = crate::command();
    command.build();
    for word in words {
        let Some(found) = command.find_subcommand(word).cloned() else {
            return Err(unknown_command_error(&command, word));
        };
        command = found;
    }
    let mut page = Vec::new();
    Man::new(command)
        .render(&mut page)
        .expect("writing to memory succeeds");
    Output::StandardOutput.write(&page)?;
    Ok(DONE)
}

fn unknown_command_error(parent: &Command, word: &str) -> LaboratoryError {
    let names: Vec<_> = parent.get_subcommands().map(Command::get_name).collect();
    let remedy = match nearest_name(word, names.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("`{} --help` lists the commands", parent.get_name()),
    };
    LaboratoryError::Request(format!(
        "`{}` has no command `{word}`; {remedy}",
        parent.get_name()
    ))
}

/// Names that diskperf knows, for completion. The command-line definition does not list them,
/// because the parser accepts any text in their place to give better error messages.
struct CompletionValues {
    programs: Vec<PossibleValue>,
    systems: Vec<PossibleValue>,
    drives: Vec<PossibleValue>,
    documents: Vec<PossibleValue>,
    /// Whether the shell completes paths if no name matches, as bash does. Other shells complete
    /// either names or paths.
    completes_paths: bool,
}

impl CompletionValues {
    fn new(shell: Shell) -> Result<Self, LaboratoryError> {
        let built_in = |(name, meaning)| PossibleValue::new(name).help(meaning);
        let entry = |(name, meaning): (String, String)| PossibleValue::new(name).help(meaning);
        let catalogue = Catalogue::embedded();
        let suites = Suite::list_suites().into_iter().map(built_in);
        let programs = Program::list_programs().into_iter().map(built_in);
        let drives = list_components(&catalogue, Component::Drive).into_iter();
        let documents = list_documents(&catalogue)?.into_iter();
        // bash splits words at the colon of a variant.
        let systems = list_systems(&catalogue).into_iter();
        let systems = systems.filter(|(name, _)| !name.contains(':'));
        Ok(Self {
            programs: suites.chain(programs).collect(),
            systems: systems.map(entry).collect(),
            drives: drives.map(entry).collect(),
            documents: documents
                .map(|document| PossibleValue::new(document.name))
                .collect(),
            completes_paths: shell == Shell::Bash,
        })
    }

    /// Returns the definition of a command with the possible values of its arguments.
    fn complete(&self, command: Command) -> Command {
        command
            .mut_args(|argument| self.complete_argument(argument))
            .mut_subcommands(|below| self.complete(below))
    }

    fn complete_argument(&self, argument: Arg) -> Arg {
        if !argument.get_possible_values().is_empty() {
            return argument;
        }
        let value = argument.get_value_names().and_then(<[_]>::first);
        let names = match value.map(|name| name.as_str()) {
            Some("WHAT") => self.programs.clone(),
            Some("NAME") => self.drives.clone(),
            Some("PUBLISHED") => self.documents.clone(),
            Some("TARGET" | "RUN|TARGET") if self.completes_paths => self.systems.clone(),
            Some("PROGRAM|TARGET") if self.completes_paths => {
                [self.programs.as_slice(), &self.systems].concat()
            }
            Some("TARGET" | "RUN|TARGET" | "RUN") => {
                return argument.value_hint(ValueHint::AnyPath);
            }
            Some("DIR") => return argument.value_hint(ValueHint::DirPath),
            _ => return argument,
        };
        argument.value_parser(PossibleValuesParser::new(names))
    }
}
