//! Places of a user that channels take over from programs that wait to be asked.

use crate::session::Session;

/// Places that the channels of a user take over from the programs of its that were asked for them: those of
/// the channels that answer an invitation, with one more, but no more than there are such programs.
pub(super) fn of_invitees(sessions: &[Session], user: u32) -> usize {
    let own = || sessions.iter().filter(|session| session.user == user);
    let invitees: usize = own().map(|session| session.invitees.len()).sum();
    let answering: usize = own().map(Session::answering).sum();
    invitees.min(answering + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::tests::session;
    use crate::session::{Asked, Owned};

    /// The second of two programs that answered at the same time was refused: the place of one alone was
    /// given to both.
    #[test]
    fn each_answer_of_a_user_at_its_limit_takes_the_place_of_an_invitee() {
        let (mut waits, _one) = session("places-waits");
        let (opens, _two) = session("places-opens");
        waits.invitees = vec![11, 12];
        let open = |answers| Asked::Open {
            to: "n2".into(),
            service: 5,
            buffers: 4,
            room_octets: 100,
            name: None,
            answers,
        };
        let mut all = [waits, opens];
        assert_eq!(of_invitees(&all, 0), 1, "the first answer");
        all[1].wait_for(1, open(true));
        all[1].wait_for(2, open(false));
        assert_eq!(of_invitees(&all, 0), 2, "the second one beside it");
        all[1].channels.push(Owned::default());
        all[1].answers_with.push(Owned::default().channel);
        assert_eq!(of_invitees(&all, 0), 2, "there are no more invitees");
        assert_eq!(of_invitees(&all, 1), 0, "of another user");
        all[1].asked.clear();
        all[1].channels[0].told = true;
        assert_eq!(of_invitees(&all, 0), 1, "its program has the channel");
    }
}
