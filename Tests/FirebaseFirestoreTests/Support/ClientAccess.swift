// Client access: reads and changes a client's state without its callback queue.

import FirestoreModel
import Foundation
import GRDB

@testable import FirebaseFirestore

extension Firestore {
  /// The folder of the cache on disk.
  var cacheFolderForTests: URL { cacheFolder }

  /// Waits until the client has handled all calls, and returns the number of cached documents of a collection.
  func cacheCount(of collection: String) async throws -> Int {
    let query = clientQuery(of: collection)
    return try await withCheckedThrowingContinuation { continuation in
      client.event { client in
        continuation.resume(with: client.engine.cached(query).map(\.documents.count))
      }
    }
  }

  /// Makes the stored overlays (the effects of queued writes on documents) unreadable, like damage of the file.
  func damageOverlays() async {
    await withCheckedContinuation { continuation in
      client.event { client in
        guard let persistence = client.engine.store.persistence as? DiskPersistence else {
          preconditionFailure("the cache is on disk")
        }
        persistence.use { try $0.execute(sql: "UPDATE overlays SET body = x'00'") }
        continuation.resume()
      }
    }
  }

  /// A description of the sync engine's state, for failure messages.
  func stateForMessages() async -> String {
    await withCheckedContinuation { continuation in
      client.event { client in
        let engine = client.engine
        let views = engine.views.values.map {
          "view: current \($0.isCurrent), remote keys \($0.remoteKeys.map(\.id).sorted())"
        }
        let targets = engine.listenTargets.values.map {
          "target \($0.id) \($0.purpose) at \($0.snapshotVersion.microseconds)"
        }
        let text =
          "\(views), \(targets), limbo \(engine.limboTargets.keys.map(\.id)), queued \(engine.pipeline.map(\.id)),"
          + " streams \(engine.watch.isOpen) \(engine.writing.isOpen), offline \(engine.offlineCauses)"
        continuation.resume(returning: text)
      }
    }
  }

  private func clientQuery(of id: String) -> ClientQuery {
    ClientQuery(
      ModelQuery(parent: .init(rootOf: databaseName), .init(from: [.init(id)])))
  }
}
