// Reads of a client's state that pass by its callback queue.

import FirestoreModel
import Foundation

@testable import FirebaseFirestore

extension Firestore {
  /// The folder of the cache on disk.
  var cachePlace: URL { cacheFolder }

  /// Waits until the client has handled all calls, and returns the number of cached documents of a collection.
  func cacheCount(of collection: String) async throws -> Int {
    let query = clientQuery(of: collection)
    return try await withCheckedThrowingContinuation { continuation in
      client.event { client in
        continuation.resume(with: client.engine.cached(query).map(\.documents.count))
      }
    }
  }

  private func clientQuery(of id: String) -> ClientQuery {
    ClientQuery(
      ModelQuery(parent: .init(rootOf: databaseName), .init(from: [.init(id)])))
  }
}
