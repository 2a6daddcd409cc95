//! Search for the blocks of a run that drew its offsets or sizes in an order of its own. Its blocks
//! and their seeds are unknown until they are read.

use super::record::{BlockPlace, BlockRecord, WriteState};
use super::{Block, NAMED_MAX, Purpose, Unread, Verifier};
use crate::program::ProgramError;
use diskperf_fio::verify::{Expectation, MAGIC, Mismatch};

/// Search for the blocks of a run with an unknown order. The blocks that this program's order would
/// leave are compared first. If more than half of them match, this program wrote all blocks, and
/// the others are differences. Otherwise all units of the files are read, and each header found
/// confirms its data.
pub(crate) struct Survey {
    /// Smallest part of a file with a header of its own, in bytes.
    unit_bytes: u32,
    /// Whether each write covers one unit, so that its data follows from its seed.
    is_one_write: bool,
    parts: Vec<Part>,
    /// File and unit to read next. `None` until the search reads all units.
    next: Option<(usize, u64)>,
    /// Number of blocks that match this program's order of writes.
    matched: u64,
    /// Number of blocks that do not match this program's order of writes.
    differing: u64,
    /// First of the blocks that do not match, each with its bytes and a description of the
    /// difference.
    differences: Vec<(Block, Vec<u8>, String)>,
}

/// Part of a file that the job uses.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part {
    pub(crate) start_bytes: u64,
    pub(crate) units: u64,
}

impl Survey {
    /// Creates the search in the given parts of files.
    pub(crate) fn new(unit_bytes: u32, is_one_write: bool, parts: Vec<Part>) -> Self {
        Self {
            unit_bytes,
            is_one_write,
            parts,
            next: None,
            matched: 0,
            differing: 0,
            differences: Vec::new(),
        }
    }

    /// Returns the number of units that the search has still to read.
    fn unread(&self) -> u64 {
        let Some((file, unit)) = self.next else {
            return 0;
        };
        let parts = self.parts.iter().skip(file);
        let units: u64 = parts.map(|part| part.units).sum();
        units.saturating_sub(unit)
    }

    /// Takes the next unit and returns its position. Returns `None` if no unit is left.
    fn take(&mut self) -> Option<BlockPlace> {
        let (file, unit) = self.next.as_mut()?;
        while *unit >= self.parts.get(*file)?.units {
            (*file, *unit) = (*file + 1, 0);
        }
        let place = BlockPlace {
            file: *file,
            offset_bytes: self.parts[*file].start_bytes + *unit * u64::from(self.unit_bytes),
        };
        *unit += 1;
        Some(place)
    }
}

impl Verifier {
    fn survey(&mut self) -> Option<&mut Survey> {
        self.other_run.as_mut()?.survey.as_mut()
    }

    /// Returns the number of units that a search has still to read.
    pub(super) fn places_to_search(&self) -> u64 {
        let other = self.other_run.as_ref();
        let survey = other.and_then(|other| other.survey.as_ref());
        survey.map_or(0, Survey::unread)
    }

    /// Reports whether a search evaluates the blocks.
    pub(super) fn is_surveying(&self) -> bool {
        let other = self.other_run.as_ref();
        other.is_some_and(|other| other.survey.is_some())
    }

    /// Reports whether the search reads all units of the files.
    pub(super) fn is_reading_units(&self) -> bool {
        let other = self.other_run.as_ref();
        let survey = other.and_then(|other| other.survey.as_ref());
        survey.is_some_and(|survey| survey.next.is_some())
    }

    /// Begins to read all units of the files if another program wrote the blocks, and returns
    /// whether it does.
    ///
    /// # Errors
    ///
    /// Fails for blocks that differ from this program's writes if differences are fatal.
    pub(crate) fn search_units(&mut self) -> Result<bool, ProgramError> {
        let Some(survey) = self.survey() else {
            return Ok(false);
        };
        if survey.matched > survey.differing {
            self.note_differing()?;
            return Ok(false);
        }
        survey.next = Some((0, 0));
        (self.verified.blocks, self.verified.bytes) = (0, 0);
        Ok(true)
    }

    /// Takes the next unit of the search.
    pub(super) fn next_surveyed(&mut self) -> Option<Unread> {
        let survey = self.survey()?;
        let place = survey.take()?;
        let record = BlockRecord {
            bytes: survey.unit_bytes,
            seed: 0,
            number: 0,
            time_ns: None,
            state: WriteState::Complete,
            is_trimmed: false,
        };
        Some(Unread { place, record })
    }

    /// Compares a block that a search has read, and counts it.
    pub(super) fn judge_surveyed(
        &mut self,
        block: Block,
        bytes: &mut [u8],
        path: impl Fn(usize) -> String,
    ) -> Result<(), ProgramError> {
        let is_of_units = self.is_reading_units();
        if is_of_units && !self.is_written(bytes) {
            return Ok(());
        }
        self.verified.blocks += 1;
        self.verified.bytes += u64::from(block.bytes);
        let checked = match is_of_units {
            true => self.check_unit(block, bytes),
            false => self.check_recorded(block, bytes),
        };
        let Err(mismatch) = checked else {
            return Ok(());
        };
        let place = path(block.place.file);
        if is_of_units {
            let dumped = self.dump(block, bytes);
            return self.note(format!("{place}: {mismatch}{dumped}"));
        }
        let survey = self.survey().expect("it searches");
        survey.differing += 1;
        if survey.differences.len() < NAMED_MAX {
            let text = format!("{place}: {mismatch}");
            survey.differences.push((block, bytes.to_vec(), text));
        }
        Ok(())
    }

    /// Reports whether a unit was written: it has a header, or, for data without a header, a byte
    /// other than zero.
    fn is_written(&self, bytes: &[u8]) -> bool {
        match self.plan.layout.header(bytes) {
            Some(decoded) => decoded.magic == MAGIC,
            None => bytes.iter().any(|byte| *byte != 0),
        }
    }

    fn check_recorded(&mut self, block: Block, bytes: &mut [u8]) -> Result<(), Mismatch> {
        let seed = match block.purpose {
            Purpose::Compare(record) => Some(record.seed),
            Purpose::Check | Purpose::Write(_) => None,
        };
        let expected = Expectation {
            offset_bytes: block.place.offset_bytes,
            seed,
            ..Expectation::default()
        };
        self.plan.layout.check(bytes, expected)?;
        let survey = self.survey().expect("it searches");
        survey.matched += 1;
        Ok(())
    }

    fn check_unit(&mut self, block: Block, bytes: &mut [u8]) -> Result<(), Mismatch> {
        let layout = &self.plan.layout;
        let other = self.other_run.as_mut().expect("it searches");
        other.found += 1;
        let is_one_write = other.survey.as_ref().is_some_and(|one| one.is_one_write);
        let seed = layout.header(bytes).map(|decoded| decoded.header.seed);
        let seed = seed.filter(|seed| is_one_write && other.seeds.contains(seed));
        let expected = Expectation {
            offset_bytes: block.place.offset_bytes,
            seed,
            ..Expectation::default()
        };
        layout.check(bytes, expected)
    }

    /// Evaluates the rest of the search after all reads, or when the job ends before.
    pub(super) fn settle_survey(&mut self) -> Result<(), ProgramError> {
        let found = self.other_run.as_ref().map_or(0, |other| other.found);
        let Some(survey) = self.survey() else {
            return Ok(());
        };
        let differing = survey.differing;
        match survey.next {
            // Something must have been written.
            Some(_) if found == 0 && survey.unread() == 0 => {
                self.verified.blocks = differing;
                self.note_differing()
            }
            Some(_) => {
                self.verified.unread_blocks += survey.unread();
                Ok(())
            }
            None if survey.matched > differing => self.note_differing(),
            // The job ended before it is known who wrote the blocks.
            None => {
                self.verified.unread_blocks += self.verified.blocks;
                (self.verified.blocks, self.verified.bytes) = (0, 0);
                Ok(())
            }
        }
    }

    /// Counts and lists the blocks that do not match this program's order of writes.
    fn note_differing(&mut self) -> Result<(), ProgramError> {
        let Some(survey) = self.survey() else {
            return Ok(());
        };
        let differences = std::mem::take(&mut survey.differences);
        let unnamed = std::mem::take(&mut survey.differing) - differences.len() as u64;
        for (block, bytes, text) in differences {
            let dumped = self.dump(block, &bytes);
            self.note(text + &dumped)?;
        }
        self.verified.mismatches += unnamed;
        Ok(())
    }
}
