//! Tells clients when a resource that they subscribed to has changed on the disk, whoever changed it.
//!
//! The vault is looked at twice a second, for as long as a client is subscribed to anything: that also finds what
//! changes while no watcher runs here.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rmcp::model::ResourceUpdatedNotificationParam;
use rmcp::service::SubscriptionContext;
use rmcp::{ErrorData, Peer, RoleServer};
use serde_json::Value;

use super::calls::CallHandler;
use super::resources::states_of;

/// How often the vault is looked at.
const EVERY: Duration = Duration::from_millis(500);

/// The most resources that one client is told of.
const MOST: usize = 100;

/// What the client of one session is subscribed to.
#[derive(Debug, Default)]
pub(super) struct Subscriptions(Mutex<SubscriptionState>);

#[derive(Debug, Default)]
struct SubscriptionState {
    /// The resources, each with its state when it was last looked at.
    known: BTreeMap<String, Value>,
    /// Whether a task looks at them. There is one, however often a client subscribes and unsubscribes.
    is_watched: bool,
}

impl Subscriptions {
    /// Begins to tell a client of the older revisions of a resource.
    ///
    /// # Errors
    /// Too many of them.
    pub async fn add(
        self: &Arc<Self>,
        uri: String,
        calls: &Arc<CallHandler>,
        peer: Peer<RoleServer>,
    ) -> Result<(), ErrorData> {
        let state = states(calls, vec![uri.clone()]).await.into_values().next().unwrap_or_default();
        let mut subscribed = self.lock();
        if subscribed.known.len() >= MOST {
            return Err(ErrorData::invalid_params(format!("{MOST} subscriptions are the most"), None));
        }
        subscribed.known.insert(uri, state);
        if !std::mem::replace(&mut subscribed.is_watched, true) {
            tokio::spawn(Arc::clone(self).tell(Arc::clone(calls), peer));
        }
        Ok(())
    }

    /// Ends it.
    pub fn remove(&self, uri: &str) {
        self.lock().known.remove(uri);
    }

    fn lock(&self) -> MutexGuard<'_, SubscriptionState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn tell(self: Arc<Self>, calls: Arc<CallHandler>, peer: Peer<RoleServer>) {
        loop {
            tokio::time::sleep(EVERY).await;
            let known: Vec<String> = {
                let mut subscribed = self.lock();
                if subscribed.known.is_empty() || peer.is_transport_closed() {
                    *subscribed = SubscriptionState::default();
                    return;
                }
                subscribed.known.keys().cloned().collect()
            };
            let now = states(&calls, known).await;
            let changed = update(&mut self.lock().known, now);
            for uri in changed {
                let _ = peer.notify_resource_updated(ResourceUpdatedNotificationParam::new(uri)).await;
            }
        }
    }
}

/// Tells a client of the newest revision, until it ends its request.
///
/// # Errors
/// None: a client that is gone ends it.
pub(super) async fn listen(context: SubscriptionContext, calls: &Arc<CallHandler>) -> Result<(), ErrorData> {
    let uris = context.accepted().resource_subscriptions.clone().unwrap_or_default();
    let uris: Vec<String> = uris.into_iter().take(MOST).collect();
    if uris.is_empty() {
        context.cancelled().await;
        return Ok(());
    }
    let mut known = states(calls, uris.clone()).await;
    loop {
        tokio::select! {
            () = context.cancelled() => return Ok(()),
            () = tokio::time::sleep(EVERY) => {}
        }
        for uri in update(&mut known, states(calls, uris.clone()).await) {
            if context.sink().notify_resource_updated(uri).await.is_err() {
                return Ok(());
            }
        }
    }
}

/// Which of the known resources have another state now; from then on they have it.
fn update(known: &mut BTreeMap<String, Value>, now: BTreeMap<String, Value>) -> Vec<String> {
    let mut changed = Vec::new();
    for (uri, state) in now {
        if let Some(old) = known.get_mut(&uri).filter(|old| **old != state) {
            *old = state;
            changed.push(uri);
        }
    }
    changed
}

async fn states(calls: &Arc<CallHandler>, uris: Vec<String>) -> BTreeMap<String, Value> {
    let calls = Arc::clone(calls);
    let look = move || calls.workspace.with(|vaults| states_of(vaults, uris));
    tokio::task::spawn_blocking(look).await.unwrap_or_default()
}
