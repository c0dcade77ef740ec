//! Weighted budget that client keys share fairly.
//!
//! A request reserves an amount before it uses the resource (bytes of memory, a place
//! for a computation, a concurrency slot) and gives it back by dropping the [`Reservation`].
//!
//! ```text
//!   reserve ──► queue of the key ──┐
//!   reserve ──► queue of the key ──┼─► grant: the key served longest ago first ──► Reservation
//!                                  │                                                  │ drop
//!   try_reserve, try_grow ─────────┴──────────────── never wait ◄─────────────────────┘
//! ```
//!
//! Fair share: while several keys exist, a key may hold at most as much as is still free. One busy key
//! gets half of the budget, two get a third each, and a key that holds nothing always finds room.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::oneshot;

use toolgate_store::Owner;

/// Shared budget. Clones refer to the same one.
#[derive(Clone, Debug)]
pub(crate) struct Budget(Arc<Mutex<State>>);

/// Size of a [`Budget`] and how keys share it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Capacity {
    /// Total amount.
    pub(crate) size: u64,
    /// Maximum amount for one key, where it is limited.
    pub(crate) per_key: Option<u64>,
    /// Several keys exist: each may hold at most as much as is free.
    pub(crate) is_shared: bool,
}

/// Reason why a reservation was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Full {
    /// The budget is in use.
    Budget,
    /// The key has its share.
    Key,
}

#[derive(Debug)]
struct State {
    capacity: Capacity,
    held: u64,
    /// Keys that hold or wait for something.
    keys: HashMap<Owner, Share>,
    /// Number of waiters in all queues.
    waiting: usize,
    /// Number of grants so far; orders keys by their last one.
    grants: u64,
    /// Identifies the next waiter.
    next_waiter: u64,
}

#[derive(Debug, Default)]
struct Share {
    held: u64,
    last_grant: u64,
    queue: VecDeque<Waiter>,
}

#[derive(Debug)]
struct Waiter {
    id: u64,
    amount: u64,
    granted: oneshot::Sender<Reservation>,
}

/// Amount taken from a [`Budget`]; given back on drop.
#[derive(Debug)]
pub(crate) struct Reservation {
    budget: Budget,
    owner: Owner,
    amount: u64,
}

impl Budget {
    pub(crate) fn new(capacity: Capacity) -> Self {
        Self(Arc::new(Mutex::new(State {
            capacity,
            held: 0,
            keys: HashMap::new(),
            waiting: 0,
            grants: 0,
            next_waiter: 0,
        })))
    }

    /// Changes the capacity. Reservations stay valid.
    pub(crate) fn resize(&self, capacity: Capacity) {
        self.state().capacity = capacity;
        self.grant();
    }

    /// Total amount.
    pub(crate) fn size(&self) -> u64 {
        self.state().capacity.size
    }

    /// Reserves `amount` if there is room now.
    pub(crate) fn try_reserve(&self, owner: Owner, amount: u64) -> Result<Reservation, Full> {
        let mut state = self.state();
        state.fits(owner, amount)?;
        Ok(state.take(self, owner, amount))
    }

    /// Reserves `amount`, waiting for room for at most `patience`.
    pub(crate) async fn reserve(
        &self,
        owner: Owner,
        amount: u64,
        patience: Duration,
    ) -> Result<Reservation, Full> {
        let (waiting, granted) = self.enqueue(owner, amount)?;
        self.grant();
        let granted = tokio::time::timeout(patience, granted).await;
        match granted {
            Ok(Ok(reservation)) => Ok(reservation),
            // The sender is dropped only together with the waiter.
            Ok(Err(_)) | Err(_) => {
                drop(waiting);
                Err(self.state().fits(owner, amount).err().unwrap_or(Full::Budget))
            }
        }
    }

    fn enqueue(
        &self,
        owner: Owner,
        amount: u64,
    ) -> Result<(Waiting<'_>, oneshot::Receiver<Reservation>), Full> {
        let mut state = self.state();
        let Capacity { size, per_key, .. } = state.capacity;
        if amount > size {
            return Err(Full::Budget);
        }
        if per_key.is_some_and(|most| amount > most) {
            return Err(Full::Key);
        }
        let id = state.next_waiter;
        state.next_waiter += 1;
        let (granted, receiver) = oneshot::channel();
        let waiter = Waiter { id, amount, granted };
        state.keys.entry(owner).or_default().queue.push_back(waiter);
        state.waiting += 1;
        Ok((Waiting { budget: self, owner, id }, receiver))
    }

    /// Serves the queues as far as there is room.
    fn grant(&self) {
        let mut granted = Vec::new();
        let mut state = self.state();
        while let Some((owner, waiter)) = state.next() {
            granted.push((waiter.granted, state.take(self, owner, waiter.amount)));
        }
        drop(state);
        for (waiter, reservation) in granted {
            // A waiter that has left gives its reservation back at once.
            drop(waiter.send(reservation));
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn fits(&self, owner: Owner, amount: u64) -> Result<(), Full> {
        let held = self.keys.get(&owner).map_or(0, |share| share.held);
        self.key_fits(held, amount)?;
        if amount > self.free() { Err(Full::Budget) } else { Ok(()) }
    }

    fn key_fits(&self, held: u64, amount: u64) -> Result<(), Full> {
        let wanted = held.saturating_add(amount);
        let Capacity { per_key, is_shared, .. } = self.capacity;
        // A key that holds nothing waits for the budget, not for its own share.
        if per_key.is_some_and(|most| wanted > most)
            || (is_shared && held > 0 && wanted > self.free())
        {
            return Err(Full::Key);
        }
        Ok(())
    }

    fn free(&self) -> u64 {
        self.capacity.size.saturating_sub(self.held)
    }

    fn take(&mut self, budget: &Budget, owner: Owner, amount: u64) -> Reservation {
        self.grants += 1;
        let share = self.keys.entry(owner).or_default();
        share.held += amount;
        share.last_grant = self.grants;
        self.held += amount;
        Reservation { budget: budget.clone(), owner, amount }
    }

    /// Removes the next waiter that there is room for: the key that was served longest ago first. A
    /// waiter that needs more than is free keeps the others of its budget waiting, so that it is not
    /// overtaken for ever; a waiter whose key has its share does not.
    fn next(&mut self) -> Option<(Owner, Waiter)> {
        if self.waiting == 0 {
            return None;
        }
        let (owner, amount) = self
            .keys
            .iter()
            .filter_map(|(owner, share)| {
                let first = share.queue.front()?;
                self.key_fits(share.held, first.amount).ok()?;
                Some((share.last_grant, first.id, *owner, first.amount))
            })
            .min()
            .map(|(_, _, owner, amount)| (owner, amount))?;
        if amount > self.free() {
            return None;
        }
        let waiter = self.keys.get_mut(&owner)?.queue.pop_front()?;
        self.waiting -= 1;
        Some((owner, waiter))
    }

    fn give_back(&mut self, owner: Owner, amount: u64) {
        self.held = self.held.saturating_sub(amount);
        if let Some(share) = self.keys.get_mut(&owner) {
            share.held = share.held.saturating_sub(amount);
        }
        self.forget(owner);
    }

    fn forget(&mut self, owner: Owner) {
        if self.keys.get(&owner).is_some_and(|share| share.held == 0 && share.queue.is_empty()) {
            self.keys.remove(&owner);
        }
    }
}

/// A place in a queue; left on drop.
struct Waiting<'a> {
    budget: &'a Budget,
    owner: Owner,
    id: u64,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let mut state = self.budget.state();
        let mut has_left = false;
        if let Some(share) = state.keys.get_mut(&self.owner)
            && let Some(at) = share.queue.iter().position(|waiter| waiter.id == self.id)
        {
            has_left = share.queue.remove(at).is_some();
            state.waiting -= usize::from(has_left);
            state.forget(self.owner);
        }
        drop(state);
        // The waiter may have kept others waiting.
        if has_left {
            self.budget.grant();
        }
    }
}

impl Reservation {
    /// Amount reserved.
    pub(crate) fn amount(&self) -> u64 {
        self.amount
    }

    /// Adds to the reservation if there is room now.
    pub(crate) fn try_grow(&mut self, more: u64) -> Result<(), Full> {
        let Self { amount, .. } = &mut self.budget.try_reserve(self.owner, more)?;
        self.amount += std::mem::take(amount);
        Ok(())
    }

    /// Splits off up to `amount`, to be given back separately.
    pub(crate) fn split(&mut self, amount: u64) -> Self {
        let amount = amount.min(self.amount);
        self.amount -= amount;
        Self { budget: self.budget.clone(), owner: self.owner, amount }
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        if self.amount > 0 {
            self.budget.state().give_back(self.owner, self.amount);
            self.budget.grant();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHARED: Capacity = Capacity { size: 12, per_key: None, is_shared: true };
    const PATIENCE: Duration = Duration::from_secs(60);

    fn key(name: &str) -> Owner {
        Owner::of(name)
    }

    fn held(budget: &Budget) -> u64 {
        budget.state().held
    }

    #[test]
    fn one_key_gets_half_and_leaves_room_for_the_others() {
        let budget = Budget::new(SHARED);
        let mut taken = Vec::new();
        for (name, most) in [("a", 6), ("b", 3), ("c", 2)] {
            let mut count = 0;
            while let Ok(reservation) = budget.try_reserve(key(name), 1) {
                taken.push(reservation);
                count += 1;
            }
            assert_eq!(count, most, "{name}");
            assert_eq!(budget.try_reserve(key(name), 1).unwrap_err(), Full::Key);
        }
        assert!(budget.try_reserve(key("d"), 1).is_ok(), "there is room for a key that has none");
        drop(taken);
        assert_eq!(held(&budget), 0);
        assert!(budget.state().keys.is_empty(), "nothing is kept of keys that hold nothing");
    }

    #[test]
    fn a_single_key_may_use_all_of_it() {
        let budget = Budget::new(Capacity { is_shared: false, ..SHARED });
        let all = budget.try_reserve(key("a"), 12).unwrap();
        assert_eq!(budget.try_reserve(key("a"), 1).unwrap_err(), Full::Budget);
        drop(all);
        let capped = Budget::new(Capacity { is_shared: false, per_key: Some(5), ..SHARED });
        assert_eq!(capped.try_reserve(key("a"), 6).unwrap_err(), Full::Key);
    }

    #[test]
    fn reservations_grow_split_and_come_back() {
        let budget = Budget::new(Capacity { is_shared: false, ..SHARED });
        let mut first = budget.try_reserve(key("a"), 4).unwrap();
        first.try_grow(6).unwrap();
        assert_eq!(first.try_grow(3), Err(Full::Budget));
        let part = first.split(3);
        assert_eq!((first.amount(), part.amount(), held(&budget)), (7, 3, 10));
        drop(first);
        assert_eq!(held(&budget), 3);
        drop(part);
        assert_eq!(held(&budget), 0);
    }

    /// Polls a future once.
    fn poll<F: Future + Unpin>(future: &mut F) -> Option<F::Output> {
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        match std::pin::Pin::new(future).poll(&mut context) {
            std::task::Poll::Ready(output) => Some(output),
            std::task::Poll::Pending => None,
        }
    }

    #[tokio::test]
    async fn keys_take_turns_and_a_large_waiter_is_not_overtaken() {
        let budget = Budget::new(Capacity { is_shared: false, ..SHARED });
        let all = budget.try_reserve(key("a"), 12).unwrap();
        let mut waiting = [("a", 12), ("a", 12), ("b", 12), ("c", 1)]
            .map(|(name, amount)| Box::pin(budget.reserve(key(name), amount, PATIENCE)));
        assert!(waiting.iter_mut().all(|waiting| poll(waiting).is_none()));
        drop(all);
        // `a` was served last; `b` came before `c`.
        let mut order = Vec::new();
        let mut last = None;
        while order.len() < 4 {
            let at = (0..4).filter(|at| !order.contains(at));
            let found: Vec<_> =
                at.filter_map(|at| Some((at, poll(&mut waiting[at])?.unwrap()))).collect();
            assert_eq!(found.len(), 1, "one at a time");
            for (at, reservation) in found {
                order.push(at);
                last = Some(reservation);
            }
            // The next one is granted when this one goes.
            last.take();
        }
        assert_eq!(order, [2, 3, 0, 1]);
        assert_eq!(held(&budget), 0);
    }

    #[tokio::test]
    async fn a_key_with_its_share_does_not_block_others() {
        let budget = Budget::new(SHARED);
        let half = budget.try_reserve(key("a"), 6).unwrap();
        let mut greedy = Box::pin(budget.reserve(key("a"), 1, PATIENCE));
        assert!(poll(&mut greedy).is_none());
        assert!(budget.reserve(key("b"), 6, PATIENCE).await.is_ok());
        drop(half);
        assert!(greedy.await.is_ok());
    }

    #[tokio::test]
    async fn waiters_that_leave_or_run_out_of_time_are_forgotten() {
        let budget = Budget::new(Capacity { is_shared: false, ..SHARED });
        let all = budget.try_reserve(key("a"), 12).unwrap();
        let mut large = Box::pin(budget.reserve(key("b"), 12, PATIENCE));
        assert!(poll(&mut large).is_none());
        let late = budget.reserve(key("c"), 1, Duration::ZERO).await;
        assert_eq!(late.unwrap_err(), Full::Budget);
        drop(large);
        drop(all);
        assert_eq!(held(&budget), 0);
        assert!(budget.state().keys.is_empty());
        assert_eq!(budget.reserve(key("a"), 13, PATIENCE).await.unwrap_err(), Full::Budget);
    }
}
