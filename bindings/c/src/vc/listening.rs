//! A service that is listened to, and a circuit that is being opened: what goes on beside the calls.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use nix::errno::Errno;
use nix::sys::eventfd::EventFd;
use rota::vc::{Asked, CircuitClass, CircuitListener, Duplex, ListenOptions, Options, Sender, VcError};
use rota::{ControlName, Span};

use super::handle::Settings;
use super::no::No;
use super::open::Open;

/// How long a program that opens a duplex circuit may take for its part.
const ANSWER: Span = Span::from_millis(10_000);
/// How long the other program may take to accept.
const CONNECT: Span = Span::from_millis(20_000);

pub fn locked<T>(what: &Mutex<T>) -> MutexGuard<'_, T> {
    what.lock().unwrap_or_else(PoisonError::into_inner)
}

/// An open circuit with the name of the station at its other end.
pub type Arrival = (Open, String);

/// What threads have finished.
#[derive(Default)]
struct Arrivals {
    ready: VecDeque<Result<Arrival, No>>,
    /// Circuits of which the second direction is being opened.
    half_open: usize,
}

/// The bit of a circuit's class.
const fn bit(class: CircuitClass) -> u8 {
    match class {
        CircuitClass::Reliable => 1,
        CircuitClass::BestEffort => 2,
        CircuitClass::Guaranteed => 4,
    }
}

pub struct Listening {
    pub listener: CircuitListener,
    control: ControlName,
    settings: Settings,
    backlog: usize,
    arrivals: Arc<Mutex<Arrivals>>,
    is_dead: bool,
}

impl Listening {
    pub fn begin(
        control: &ControlName,
        service: u32,
        options: ListenOptions,
        settings: Settings,
    ) -> Result<Self, No> {
        let listened = CircuitListener::listen(control, service, &options);
        let listener = listened.map_err(|error| No::from(error).of_listener())?;
        let (backlog, control) = (usize::from(options.backlog), control.clone());
        Ok(Self { listener, control, settings, backlog, arrivals: Arc::default(), is_dead: false })
    }

    /// Takes one circuit more from the node; false where there is none, or no room.
    pub fn pump(&mut self, bell: &Arc<EventFd>) -> bool {
        let mut arrivals = locked(&self.arrivals);
        // One word on what is wrong is enough until it was heard.
        let is_wrong = self.is_dead || arrivals.ready.back().is_some_and(Result::is_err);
        if is_wrong || arrivals.ready.len() + arrivals.half_open >= self.backlog {
            return false;
        }
        let Settings { is_simplex, takes, reason, .. } = self.settings;
        let judge =
            |asked: &Asked<'_>| if takes & bit(asked.terms.class()) != 0 { Ok(()) } else { Err(reason) };
        let receiver = match self.listener.accept_if(Span::ZERO, judge) {
            Ok(receiver) => receiver,
            Err(VcError::TimedOut) => return false,
            Err(error) => {
                self.is_dead = matches!(error, VcError::NodeGone);
                arrivals.ready.push_back(Err(error.into()));
                return false;
            }
        };
        if is_simplex {
            let from = receiver.from().to_owned();
            arrivals.ready.push_back(Ok((Open::new(None, Some(receiver)), from)));
            return true;
        }
        arrivals.half_open += 1;
        let (control, all, bell) = (self.control.clone(), Arc::clone(&self.arrivals), Arc::clone(bell));
        std::thread::spawn(move || {
            let from = receiver.from().to_owned();
            let answered = Duplex::answer(&control, receiver, ANSWER);
            let mut arrivals = locked(&all);
            arrivals.half_open -= 1;
            // The opener of one that did not become a circuit hears of it.
            if let Ok(both) = answered {
                arrivals.ready.push_back(Ok((Open::duplex(both), from)));
            }
            let _ = bell.write(1);
        });
        true
    }

    pub fn is_due(&self) -> bool {
        self.is_dead || !locked(&self.arrivals).ready.is_empty()
    }

    pub fn take(&mut self) -> Result<Arrival, No> {
        match locked(&self.arrivals).ready.pop_front() {
            Some(arrival) => arrival,
            None if self.is_dead => Err(VcError::NodeGone.into()),
            None => Err(No::idle()),
        }
    }
}

/// A circuit that a thread opens.
pub struct Opening(Arc<Mutex<Option<Result<Open, No>>>>);

impl Opening {
    pub fn begin(
        control: &ControlName,
        to: &str,
        service: u32,
        options: Options,
        is_simplex: bool,
        bell: &Arc<EventFd>,
    ) -> Self {
        let (control, to) = (control.clone(), to.to_owned());
        Self::by(bell, move || {
            let opened = if is_simplex {
                Sender::connect(&control, &to, service, &options).map(|sender| Open::new(Some(sender), None))
            } else {
                Duplex::connect(&control, &to, service, &options, CONNECT).map(Open::duplex)
            };
            opened.map_err(|error| refused(error, &to, service))
        })
    }

    /// The work of a thread, which rings before its result can be taken: nobody would read a later ring.
    pub fn by(bell: &Arc<EventFd>, open: impl FnOnce() -> Result<Open, No> + Send + 'static) -> Self {
        let result = Arc::new(Mutex::new(None));
        let (into, bell) = (Arc::clone(&result), Arc::clone(bell));
        std::thread::spawn(move || {
            let opened = open();
            let mut place = locked(&into);
            *place = Some(opened);
            let _ = bell.write(1);
        });
        Self(result)
    }

    pub fn take(&self) -> Option<Result<Open, No>> {
        locked(&self.0).take()
    }
}

fn refused(error: VcError, to: &str, service: u32) -> No {
    match error {
        VcError::TimedOut => No::new(
            Errno::ETIMEDOUT,
            format!(
                "nothing came back from service {service} of {to}: its program accepts none, or a simplex one"
            ),
        ),
        error => error.into(),
    }
}
