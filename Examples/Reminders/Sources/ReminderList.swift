// The list of reminders: reads and changes reminders in Cloud Firestore, and listens to them.

import FirebaseFirestore
import Terminal
import Foundation

/// The reminders of one list.
struct ReminderList: Sendable {
  private let collection: CollectionReference

  init(_ database: Firestore, name: String) {
    collection = database.collection("lists").document(name).collection("reminders")
  }

  private var inOrder: Query { collection.order(by: "created") }

  /// Returns the current reminders, oldest first.
  func all() async throws -> [Reminder] {
    try await inOrder.getDocuments().documents.map { try $0.data(as: Reminder.self) }
  }

  /// Adds a reminder, and returns at once. The write is in the cache, and is sent as soon as the server can
  /// be reached, even by a later run of the program.
  func add(_ title: String) throws {
    try collection.addDocument(from: Reminder(title: title), completion: report)
  }

  /// Marks a reminder as done.
  func markDone(_ reminder: Reminder) {
    guard let id = reminder.id else { return }
    collection.document(id).updateData(["isDone": true], completion: report)
  }

  /// Deletes a reminder.
  func delete(_ reminder: Reminder) {
    guard let id = reminder.id else { return }
    collection.document(id).delete(completion: report)
  }

  /// Prints the error of a write that the server rejected.
  private func report(_ error: (any Error)?) {
    if let error { Terminal.say("error: \(error.localizedDescription)") }
  }

  /// Returns a stream with one line for each change, beginning with the current reminders.
  func changes() -> AsyncThrowingStream<String, any Error> {
    AsyncThrowingStream { continuation in
      let listener = inOrder.addSnapshotListener { snapshot, error in
        guard let snapshot else {
          continuation.finish(throwing: error)
          return
        }
        for change in snapshot.documentChanges {
          guard let reminder = try? change.document.data(as: Reminder.self) else { continue }
          switch change.type {
          case .added: continuation.yield("+ \(reminder.line)")
          case .modified: continuation.yield("~ \(reminder.line)")
          case .removed: continuation.yield("- \(reminder.line)")
          }
        }
      }
      nonisolated(unsafe) let registration = listener
      continuation.onTermination = { _ in registration.remove() }
    }
  }
}
