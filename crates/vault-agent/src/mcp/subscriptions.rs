//! Notifies clients when a subscribed resource changes on the disk, whichever program changed it.
//!
//! The vault is checked twice a second while a client has a subscription. Polling also finds changes while no watcher
//! runs in this process.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rmcp::model::ResourceUpdatedNotificationParam;
use rmcp::service::SubscriptionContext;
use rmcp::{ErrorData, Peer, RoleServer};
use serde_json::Value;

use super::calls::CallHandler;
use super::resources::states_of;

/// The interval between two checks.
const EVERY: Duration = Duration::from_millis(500);

/// The maximum number of subscriptions of one client.
const MOST: usize = 100;

/// The subscriptions of one session.
#[derive(Debug, Default)]
pub(super) struct Subscriptions(Mutex<SubscriptionState>);

#[derive(Debug, Default)]
struct SubscriptionState {
    /// The resources, each with its state at the last check.
    known: BTreeMap<String, Value>,
    /// Whether the polling task runs. There is only one, however often a client subscribes and unsubscribes.
    is_watched: bool,
}

impl Subscriptions {
    /// Subscribes a client of the older revisions to a resource.
    ///
    /// # Errors
    /// Too many subscriptions.
    pub async fn add(
        self: &Arc<Self>,
        uri: String,
        calls: &Arc<CallHandler>,
        peer: Peer<RoleServer>,
    ) -> Result<(), ErrorData> {
        let state = states(calls, vec![uri.clone()]).await.into_values().next().unwrap_or_default();
        let mut subscribed = self.lock();
        if subscribed.known.len() >= MOST {
            return Err(ErrorData::invalid_params(format!("at most {MOST} subscriptions are possible"), None));
        }
        subscribed.known.insert(uri, state);
        if !std::mem::replace(&mut subscribed.is_watched, true) {
            tokio::spawn(Arc::clone(self).tell(Arc::clone(calls), peer));
        }
        Ok(())
    }

    /// Ends a subscription.
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

/// Notifies a client of the newest revision, until it ends its request.
///
/// # Errors
/// Never; if the client is gone, this returns.
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

/// Updates the known states, and returns the resources whose state has changed.
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
