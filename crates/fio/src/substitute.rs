//! Substitution of `${NAME}`, `$pagesize`, `$mb_memory` and `$ncpus` in option values.

use crate::expression::{self, ExpressionGrammar};
use crate::reader::{LINE_BYTES_MAX, shorten_text};
use crate::surroundings::{JobEnvironment, Keyword};
use diskperf_diagnostics::Problem;
use diskperf_diagnostics::SourceSpan;

/// Option value after substitution.
pub(crate) struct Substitution {
    pub(crate) value: String,
    /// Machine values that were substituted.
    pub(crate) keywords: Vec<Keyword>,
}

/// Substitutes variables and machine values in an option value and evaluates the result. `warnings`
/// receive what fio does silently.
pub(crate) fn substitute(
    value: &str,
    place: &SourceSpan,
    surroundings: &JobEnvironment,
    warnings: &mut Vec<Problem>,
) -> Result<Substitution, Problem> {
    let value = replace_variables(value, place, surroundings, warnings);
    let (value, keywords) = replace_keywords(&value, surroundings);
    if value.len() > LINE_BYTES_MAX {
        let title = format!("a value of {} bytes", value.len());
        let label = "after substitution of the variables";
        return Err(Problem::error(title).at(place, label));
    }
    if keywords.is_empty() || !value.contains(['+', '-', '*', '/']) {
        return Ok(Substitution { value, keywords });
    }
    let worked_out = expression::evaluate(&value, ExpressionGrammar::Arithmetic);
    let worked_out = worked_out.map(|value| Substitution {
        value: value.to_string(),
        keywords,
    });
    worked_out.map_err(|fault| {
        let title = format!("`{}` cannot be evaluated: {}", shorten_text(&value), fault.message);
        Problem::error(title)
            .at(place, "fio gives this to bc")
            .help("bc accepts numbers, `+ - * / % ^` and parentheses, but no suffixes such as k; write 1024")
    })
}

pub(crate) fn variable_names(value: &str) -> impl Iterator<Item = &str> {
    let parts = value.split("${").skip(1);
    parts.filter_map(|part| Some(part.split_once('}')?.0))
}

/// Replaces `${NAME}` by the value of the environment variable; an unset variable is empty.
fn replace_variables(
    value: &str,
    place: &SourceSpan,
    surroundings: &JobEnvironment,
    warnings: &mut Vec<Problem>,
) -> String {
    let mut done = String::new();
    let mut rest = value;
    while let Some(start) = rest.find("${") {
        let Some(length) = rest[start..].find('}') else {
            break;
        };
        let name = &rest[start + 2..start + length];
        done.push_str(&rest[..start]);
        match surroundings.variables.get(name) {
            Some(variable) => done.push_str(variable),
            None => {
                let title = format!("the variable `{}` is not set", shorten_text(name));
                warnings.push(Problem::warning(title).at(place, "fio puts nothing in its place"));
            }
        }
        rest = &rest[start + length + 1..];
        if done.len() > LINE_BYTES_MAX {
            break;
        }
    }
    done.push_str(rest);
    done
}

/// Replaces machine values such as `$ncpus`; returns the text and the values used.
fn replace_keywords(value: &str, surroundings: &JobEnvironment) -> (String, Vec<Keyword>) {
    let mut done = value.to_owned();
    let mut keywords = Vec::new();
    for keyword in Keyword::ALL {
        if done.contains(keyword.text()) {
            done = done.replace(
                keyword.text(),
                &surroundings.keyword_value(keyword).to_string(),
            );
            keywords.push(keyword);
        }
    }
    (done, keywords)
}
