//! Commands of the control socket: an object of JSON in a line, answered by one.

use super::report::{fault_list, report_json};
use crate::arguments::ServeArguments;
use diskperf_serve::Served;
use serde_json::{Map, Value, json};

/// Commands that there are, for messages.
const COMMANDS: &str =
    r#"write {"fault": "NAME", "on": false}, {"faults": true} or {"statistics": true}"#;

/// Answers a line of a client.
pub(super) fn answer(line: &str, arguments: &ServeArguments, served: &Served) -> Value {
    let answered = match serde_json::from_str(line) {
        Ok(Value::Object(command)) => execute(&command, arguments, served),
        Ok(_) => Err(format!("a command is an object: {COMMANDS}")),
        Err(error) => Err(format!("not valid JSON: {error}; {COMMANDS}")),
    };
    answered.unwrap_or_else(|error| json!({ "error": error }))
}

fn execute(
    command: &Map<String, Value>,
    arguments: &ServeArguments,
    served: &Served,
) -> Result<Value, String> {
    let mut keys: Vec<_> = command.keys().map(String::as_str).collect();
    keys.sort_unstable();
    match keys.as_slice() {
        ["faults"] => Ok(json!({ "faults": fault_list(served) })),
        ["statistics"] => {
            let report = served.statistics.report();
            Ok(report_json(arguments, served, &report))
        }
        ["fault", "on"] => {
            let (Some(name), Some(is_on)) = (command["fault"].as_str(), command["on"].as_bool())
            else {
                return Err(format!(
                    "`fault` is a name and `on` is true or false: {COMMANDS}"
                ));
            };
            switch(name, is_on, served)
        }
        [] => Err(format!("the command is empty: {COMMANDS}")),
        keys => Err(format!(
            "unknown command `{}`: {COMMANDS}",
            keys.join("`, `")
        )),
    }
}

/// Switches a fault, and returns its state.
fn switch(name: &str, is_on: bool, served: &Served) -> Result<Value, String> {
    let is_known = served.drive.switch_fault(name, is_on);
    let mut faults = fault_list(served);
    match faults.iter().position(|fault| fault["name"] == name) {
        Some(place) if is_known => Ok(faults.swap_remove(place)),
        _ if faults.is_empty() => Err(format!(
            "there is no fault `{name}`: the drive has none; serve it with --fault FILE.toml"
        )),
        _ => {
            let names = faults.iter().filter_map(|fault| fault["name"].as_str());
            let names = names.collect::<Vec<_>>().join("`, `");
            Err(format!("there is no fault `{name}`: there is `{names}`"))
        }
    }
}
