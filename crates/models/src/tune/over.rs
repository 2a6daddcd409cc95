//! Arguments of `--over`: a parameter, and the values to try.

use crate::error::LaboratoryError;
use diskperf_analysis::tuning::parse_number;
use diskperf_timeline::Setting;
use diskperf_timeline::units::parse_size;

/// A parameter with the values to try, in the order of trying.
#[derive(Clone, Debug, PartialEq)]
pub struct OverOption {
    /// Path of the parameter to vary.
    pub path: String,
    /// Values of the parameter, in the form of a setting.
    pub values: Vec<String>,
}

/// Maximum number of values; more are taken for a typing error.
const VALUE_COUNT_MAX: i128 = 100_000;

const DECIMAL_PLACES_MAX: usize = 9;

impl OverOption {
    /// Parses `KEY=LOW..HIGH` (every whole step from LOW to HIGH, both included),
    /// `KEY=LOW..HIGH:STEP` (other steps) or `KEY=X,Y,Z` (single values).
    pub fn parse(text: &str) -> Result<Self, LaboratoryError> {
        let wrong = |why: String| {
            LaboratoryError::Request(format!(
                "--over {text}: {why}; write KEY=LOW..HIGH, KEY=LOW..HIGH:STEP or KEY=X,Y,Z, as in filesystem.rotdelay_ms=0..10:0.5"
            ))
        };
        let (path, values) = text
            .split_once('=')
            .ok_or_else(|| wrong("no values".to_owned()))?;
        let path = path.trim();
        if path.is_empty() {
            return Err(wrong("no parameter".to_owned()));
        }
        let values = match values.split_once("..") {
            Some((low, rest)) => {
                let (high, step) = rest.split_once(':').unwrap_or((rest, "1"));
                expand_range(low.trim(), high.trim(), step.trim()).map_err(wrong)?
            }
            None => parse_list(values).map_err(wrong)?,
        };
        Ok(Self {
            path: path.to_owned(),
            values,
        })
    }

    /// Parses all `--over` arguments. Each parameter may appear once and must not be set.
    pub fn parse_all(texts: &[String], settings: &[Setting]) -> Result<Vec<Self>, LaboratoryError> {
        let mut all: Vec<Self> = Vec::new();
        for text in texts {
            let over = Self::parse(text)?;
            let path = &over.path;
            if all.iter().any(|other| other.path == *path) {
                return Err(LaboratoryError::Request(format!(
                    "--over {path} is given twice; write all its values in one, as --over {path}=1,2,4"
                )));
            }
            if settings.iter().any(|setting| setting.path == *path) {
                return Err(LaboratoryError::Request(format!(
                    "{path} is given to --over and to --set: leave one of them out"
                )));
            }
            all.push(over);
        }
        if all.is_empty() {
            return Err(LaboratoryError::Request(
                "nothing to try: give --over filesystem.rotdelay_ms=0..10, once or for several parameters"
                    .to_owned(),
            ));
        }
        Ok(all)
    }

    /// Returns the error for a parameter none of whose values can be set.
    pub fn conflict_error(&self, of_setting: &LaboratoryError) -> LaboratoryError {
        LaboratoryError::Request(format!(
            "--over {}: no value of it can be set; {of_setting}\n`diskperf list parameters` names what a system and a program have",
            self.path
        ))
    }

    /// Reports whether the values are numbers in ascending or descending order, so that they have
    /// neighbours.
    pub fn is_ordered(&self) -> bool {
        let numbers: Option<Vec<f64>> = self
            .values
            .iter()
            .map(|value| parse_number(value))
            .collect();
        numbers.is_some_and(|numbers| {
            let up = numbers.windows(2).all(|pair| pair[0] < pair[1]);
            let down = numbers.windows(2).all(|pair| pair[0] > pair[1]);
            up || down
        })
    }

    /// Finds the index of a value among those to try, whatever its notation.
    pub fn index_of_value(&self, value: &str) -> Option<usize> {
        let same = |other: &String| {
            other == value
                || parse_number(other).is_some_and(|other| parse_number(value) == Some(other))
        };
        self.values.iter().position(same)
    }

    /// Finds the index of a value, or of the number nearest to it.
    pub fn index_of_nearest(&self, value: &str) -> Option<usize> {
        if let Some(place) = self.index_of_value(value) {
            return Some(place);
        }
        let wanted = parse_number(value)?;
        let apart = |value: &String| parse_number(value).map(|number| (number - wanted).abs());
        let distances = self.values.iter().enumerate();
        let distances = distances.filter_map(|(place, value)| Some((place, apart(value)?)));
        let nearest = distances.min_by(|(_, left), (_, right)| left.total_cmp(right));
        nearest.map(|(place, _)| place)
    }
}

fn parse_list(text: &str) -> Result<Vec<String>, String> {
    let mut values: Vec<String> = Vec::new();
    for value in text.split(',') {
        let value = value.trim();
        if value.is_empty() {
            return Err("a value is missing".to_owned());
        }
        if let Some((low, high)) = value.split_once('-')
            && [low, high].iter().all(|end| parse_number(end).is_some())
        {
            return Err(format!("{value} is not a range: write {low}..{high}"));
        }
        if values.iter().any(|other| other == value) {
            return Err(format!("{value} is given twice"));
        }
        values.push(value.to_owned());
    }
    Ok(values)
}

/// A decimal number as digits and the count of those after the point, so that the values of a range
/// appear as a person would write them.
struct DecimalNumber {
    digits: i128,
    decimal_places: usize,
}

impl DecimalNumber {
    fn parse(text: &str) -> Option<Self> {
        let (sign, bare) = match text.strip_prefix('-') {
            Some(bare) => (-1, bare),
            None => (1, text),
        };
        let (whole, fraction) = bare.split_once('.').unwrap_or((bare, ""));
        let is_number = !whole.is_empty()
            && whole.len() <= 18
            && fraction.len() <= DECIMAL_PLACES_MAX
            && format!("{whole}{fraction}")
                .bytes()
                .all(|byte| byte.is_ascii_digit());
        if is_number {
            return Some(Self {
                digits: sign * format!("{whole}{fraction}").parse::<i128>().ok()?,
                decimal_places: fraction.len(),
            });
        }
        // 8K, 1M.
        Some(Self {
            digits: i128::from(parse_size(text).ok()?),
            decimal_places: 0,
        })
    }

    fn scale_to_decimals(&self, decimals: usize) -> i128 {
        self.digits * 10_i128.pow((decimals - self.decimal_places) as u32)
    }
}

fn format_decimal(digits: i128, decimals: usize) -> String {
    let sign = if digits < 0 { "-" } else { "" };
    let unit = 10_i128.pow(decimals as u32);
    let (whole, fraction) = (digits.abs() / unit, digits.abs() % unit);
    if fraction == 0 {
        return format!("{sign}{whole}");
    }
    let fraction = format!("{fraction:0decimals$}");
    format!("{sign}{whole}.{}", fraction.trim_end_matches('0'))
}

fn expand_range(low: &str, high: &str, step: &str) -> Result<Vec<String>, String> {
    let decimal = |what: &str, text: &str| {
        DecimalNumber::parse(text).ok_or_else(|| match text {
            "" => format!("{what} of the range is missing"),
            _ => format!("{what} of the range is `{text}`, which is not a number"),
        })
    };
    let (from, to) = (decimal("the start", low)?, decimal("the end", high)?);
    let by = decimal("the step", step)?;
    let decimals = from
        .decimal_places
        .max(to.decimal_places)
        .max(by.decimal_places);
    let [start, end, by] = [from, to, by].map(|number| number.scale_to_decimals(decimals));
    if by <= 0 {
        return Err(format!("a step of {step} does not advance"));
    }
    if start > end {
        return Err(format!(
            "the range is empty: it runs backwards from {low} to {high}"
        ));
    }
    let steps = (end - start) / by;
    if steps >= VALUE_COUNT_MAX {
        return Err(format!(
            "{} values are more than {VALUE_COUNT_MAX}",
            steps.saturating_add(1)
        ));
    }
    Ok((0..=steps)
        .map(|step| format_decimal(start + step * by, decimals))
        .collect())
}

#[cfg(test)]
mod tests {
    use super::OverOption;
    use diskperf_timeline::Setting;

    fn values(text: &str) -> Result<String, String> {
        let over = OverOption::parse(text).map_err(|error| error.to_string())?;
        Ok(over.values.join(" "))
    }

    #[test]
    fn values_are_a_range_or_a_list() {
        for (text, expected) in [
            ("a=1..3", "1 2 3"),
            ("a=0..10:4", "0 4 8"),
            ("a=0..2:0.5", "0 0.5 1 1.5 2"),
            ("a=0.1..0.4:0.1", "0.1 0.2 0.3 0.4"),
            ("a=-1..1", "-1 0 1"),
            ("a=-0.5..0:0.25", "-0.5 -0.25 0"),
            ("a=4K..12K:4K", "4096 8192 12288"),
            ("a=7..7", "7"),
            ("a=8k,4k", "8k 4k"),
            ("controller.raw_cache_bits=SEA|CRD, SEA", "SEA|CRD SEA"),
        ] {
            assert_eq!(values(text).as_deref(), Ok(expected), "{text}");
        }
    }

    #[test]
    fn what_is_no_range_says_why() {
        for (text, why) in [
            ("a", "no values"),
            ("=1", "no parameter"),
            ("a=", "missing"),
            ("a=1,,2", "missing"),
            ("a=1,2,1", "1 is given twice"),
            ("a=3..1", "runs backwards from 3 to 1"),
            ("a=1..3:0", "does not advance"),
            ("a=1..3:-1", "does not advance"),
            ("a=1..", "the end of the range is missing"),
            ("a=..4", "the start of the range is missing"),
            ("a=x..y", "`x`, which is not a number"),
            ("a=1..3/2", "`3/2`, which is not a number"),
            ("a=0..99999999", "more than 100000"),
            ("a=0..1:0.0000000001", "not a number"),
        ] {
            let error = values(text).unwrap_err();
            assert!(error.contains(why), "{text}: {error}");
            assert!(error.contains("LOW..HIGH:STEP"), "{text}: {error}");
        }
    }

    #[test]
    fn a_parameter_is_searched_once_and_not_set() {
        let parse = |overs: &[&str], settings: &[&str]| {
            let overs: Vec<String> = overs.iter().map(|text| (*text).to_owned()).collect();
            let settings = settings.iter().map(|text| Setting::parse(text));
            let settings: Vec<Setting> = settings.collect::<Result<_, _>>().unwrap();
            OverOption::parse_all(&overs, &settings).map_err(|error| error.to_string())
        };
        assert_eq!(parse(&["a=1", "b=2"], &["c=3"]).unwrap().len(), 2);
        assert!(parse(&["a=1", "a=2"], &[]).unwrap_err().contains("twice"));
        assert!(parse(&["a=1"], &["a=2"]).unwrap_err().contains("--set"));
        assert!(parse(&[], &[]).unwrap_err().contains("nothing to try"));
    }

    #[test]
    fn numbers_in_order_have_neighbours_and_words_do_not() {
        let over = |text| OverOption::parse(text).unwrap();
        for (text, ordered) in [
            ("a=1..3", true),
            ("a=8k,4k", true),
            ("a=1,3,2", false),
            ("a=eagle,capricorn", false),
            ("a=5", true),
        ] {
            assert_eq!(over(text).is_ordered(), ordered, "{text}");
        }
        assert_eq!(over("a=0..4").index_of_value("2.0"), Some(2));
        assert_eq!(over("a=4K,8K").index_of_value("8192"), Some(1));
        assert_eq!(over("a=0..4:2").index_of_value("3"), None);
        assert_eq!(over("a=0..10:4").index_of_nearest("7"), Some(2));
        assert_eq!(over("a=x,y").index_of_nearest("7"), None);
    }
}
