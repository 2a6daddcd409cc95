//! A computer without software: a controller and its drives, and somebody who commands
//! them.

use super::bus::Bus;
use super::controller::Controller;
use super::drive::Drive;
use super::{Hardware, Parts, Requests, Surroundings};
use crate::event::Event;
use diskperf_sim::{Processor, Sim, TieBreak};
use std::cell::RefCell;
use std::future::Future;

/// Hardware with one controller, in a simulation of its own.
pub(super) struct Bare {
    pub(super) sim: Sim<Event>,
    pub(super) processor: Processor,
    pub(super) hardware: RefCell<Hardware>,
}

impl Bare {
    /// One controller, these drives on it, and these requests to ask for.
    pub(super) fn new(
        drives: Vec<Drive>,
        controller: Controller,
        bus: Bus,
        requests: Requests,
    ) -> Self {
        Self {
            sim: Sim::new(TieBreak::Insertion),
            processor: Processor::default(),
            hardware: RefCell::new(Hardware {
                drives,
                controllers: vec![controller],
                bus,
                requests,
            }),
        }
    }

    /// Runs a script, which the controller's interrupts wake, and all that it starts, to
    /// the end.
    ///
    /// # Panics
    ///
    /// When one of them waits for something that never comes.
    pub(super) fn run(&self, script: impl Future<Output = ()> + 'static) {
        let task = self.sim.spawn("script", true, script);
        self.hardware.borrow_mut().controllers[0].connect(task);
        let handle = |event| match event {
            Event::Processor(completion) => self.processor.complete(&self.sim, completion),
            Event::Controller(number, event) => {
                let mut hardware = self.hardware.borrow_mut();
                hardware.handle(&self.around(), usize::from(number), event);
            }
            Event::Tick | Event::Character(_) | Event::Daemon(_) => panic!("there is no kernel"),
        };
        self.sim.run(handle).expect("the script ends");
        self.sim.clear();
    }

    pub(super) fn around(&self) -> Surroundings<'_> {
        Surroundings {
            sim: &self.sim,
            processor: &self.processor,
        }
    }

    /// Does something with the controller.
    pub(super) fn ask<T>(
        &self,
        ask: impl FnOnce(&mut Controller, &Surroundings<'_>, &mut Parts<'_>) -> T,
    ) -> T {
        let mut hardware = self.hardware.borrow_mut();
        let (controller, mut parts) = hardware.controller(0);
        ask(controller, &self.around(), &mut parts)
    }
}
