//! Questions of servers to the person: in the older form, a request, and in the newest, a result.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use agent_loop::BoxFuture;
use agent_loop::mcp::{Asker, McpOptions, QuestionAnswer, QuestionKind, ServerQuestion};
use serde_json::json;

use super::{all_forms, call, connected, text};

/// A person who thinks, then answers.
struct Person {
    answer: QuestionAnswer,
    thinks: Duration,
    asked: Mutex<Vec<ServerQuestion>>,
}

impl Asker for Person {
    fn ask(&self, question: ServerQuestion) -> BoxFuture<'_, QuestionAnswer> {
        self.asked.lock().unwrap().push(question);
        Box::pin(async {
            tokio::time::sleep(self.thinks).await;
            self.answer.clone()
        })
    }
}

fn person(answer: QuestionAnswer, thinks: Duration) -> Arc<Person> {
    Arc::new(Person { answer, thinks, asked: Mutex::default() })
}

#[tokio::test]
async fn a_person_answers_in_either_form() {
    for (form, server) in all_forms().await {
        for (answer, expected) in [
            (QuestionAnswer::Accept(json!({"sure": true})), json!({"action": "accept", "content": {"sure": true}})),
            (QuestionAnswer::Decline, json!({"action": "decline"})),
            (QuestionAnswer::Cancel, json!({"action": "cancel"})),
            // What does not fit is not sent.
            (QuestionAnswer::Accept(json!({"sure": "perhaps"})), json!({"action": "cancel"})),
        ] {
            let person = person(answer, Duration::ZERO);
            let options = McpOptions::default().asker(Some(person.clone()));
            let tools = connected([server.clone()], options).await;
            let said = text(&tools, "t__ask").await;
            assert_eq!(serde_json::from_str::<serde_json::Value>(&said).unwrap(), expected, "{form}");
            let asked = person.asked.lock().unwrap();
            assert_eq!((asked.len(), &asked[0].server[..], &asked[0].message[..]), (1, "t", "Really?[2J"));
            let QuestionKind::Form { schema } = &asked[0].kind else { panic!("{asked:?}") };
            assert_eq!(
                (&schema["required"], &schema["properties"]["sure"]["title"]),
                (&json!(["sure"]), &json!("Sure[2J"))
            );
        }
    }
}

#[tokio::test]
async fn the_time_a_person_takes_is_not_the_server_s() {
    // A question in the one form, and in the other.
    let forms = all_forms().await.into_iter().filter(|(form, _)| ["stdio All", "http OldOnes"].contains(&&**form));
    for (form, server) in forms {
        let person = person(QuestionAnswer::Decline, Duration::from_millis(900));
        let server = server.time_limit(Duration::from_millis(600));
        let tools = connected([server], McpOptions::default().asker(Some(person))).await;
        assert!(text(&tools, "t__ask").await.contains("decline"), "{form}");
        assert!(call(&tools, "t__hang", json!({})).await.unwrap_err().0.contains("sent nothing"), "{form}");
    }
}

#[tokio::test]
async fn a_server_is_told_where_nobody_can_be_asked() {
    for (form, server) in all_forms().await {
        let tools = connected([server], McpOptions::default()).await;
        assert_eq!(text(&tools, "t__ask").await, "nobody to ask", "{form}");
    }
}
