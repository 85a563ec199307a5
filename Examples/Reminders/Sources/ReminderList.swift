// The list of reminders in Cloud Firestore: reads it, changes it and listens to it.

import FirebaseFirestore
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

  /// Adds a reminder; returns when the server has acknowledged it.
  func add(_ title: String) async throws {
    let values = try Firestore.Encoder().encode(Reminder(title: title))
    _ = try await collection.addDocument(data: values)
  }

  /// Marks a reminder as done.
  func markDone(_ reminder: Reminder) async throws {
    guard let id = reminder.id else { return }
    try await collection.document(id).updateData(["isDone": true])
  }

  /// Deletes a reminder.
  func delete(_ reminder: Reminder) async throws {
    guard let id = reminder.id else { return }
    try await collection.document(id).delete()
  }

  /// Returns a stream with one line per change, beginning with the current reminders.
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
