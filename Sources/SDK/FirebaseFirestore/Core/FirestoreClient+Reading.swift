// Reads a document or a query's result once, from the server or the cache.

import FirebaseCore
import FirestoreModel
import Foundation
import Locking

extension FirestoreClient {
  func get(query: ClientQuery, source: FirestoreSource, completion: @escaping @Sendable (ViewResult) -> Void)
  {
    if source == .cache {
      event { client in
        let result = client.engine.cached(query)
        client.callbackQueue.async { completion(result) }
      }
      return
    }
    getFirstSnapshot(of: query) { result in
      if case .success(let view) = result, view.fromCache, source == .server {
        completion(
          .failure(
            .unavailable(
              "Failed to get documents from server. (However, these documents may exist in the local"
                + " cache. Run again without setting source to FirestoreSourceServer to retrieve the"
                + " cached documents.)")))
      } else {
        completion(result)
      }
    }
  }

  func get(
    document name: DocumentName, source: FirestoreSource,
    completion: @escaping @Sendable (DocumentResult) -> Void
  ) {
    if source == .cache {
      event { client in
        let document: CachedDocument
        do throws(PersistenceFailure) {
          document = try client.engine.store.read(name)
        } catch {
          client.engine.report(error)
          client.callbackQueue.async { completion(.failure(error.error)) }
          return
        }
        let metadata = SnapshotMetadata(hasPendingWrites: document.hasLocalChanges, isFromCache: true)
        let isInCache = document.isFound || document.isMissing
        client.callbackQueue.async {
          completion(
            isInCache
              ? .success((document.isFound ? document : nil, metadata))
              : .failure(
                .unavailable(
                  "Failed to get document from cache. (However, this document may exist on the server."
                    + " Run again without setting source to FirestoreSourceCache to attempt to retrieve"
                    + " the document from the server.)")))
        }
      }
      return
    }
    getFirstSnapshot(of: ClientQuery(document: name)) { result in
      completion(result.flatMap { FirestoreClient.document(name, in: $0, source: source) })
    }
  }

  private static func document(
    _ name: DocumentName, in view: ViewSnapshot, source: FirestoreSource
  ) -> DocumentResult {
    let document = view.documents[name]
    if document == nil, view.fromCache {
      return .failure(.unavailable("Failed to get document because the client is offline."))
    }
    if document != nil, view.fromCache, source == .server {
      return .failure(
        .unavailable(
          "Failed to get document from server. (However, this document does exist in the local cache."
            + " Run again without setting source to FirestoreSourceServer to retrieve the cached"
            + " document.)"))
    }
    let metadata = SnapshotMetadata(
      hasPendingWrites: view.documents.isPending(name), isFromCache: view.fromCache)
    return .success((document, metadata))
  }

  /// Delivers the first snapshot that the server confirmed, or the cache's snapshot while offline.
  private func getFirstSnapshot(of query: ClientQuery, completion: @escaping @Sendable (ViewResult) -> Void) {
    let options = ListenerOptions(includeMetadataChanges: true, waitForSyncWhenOnline: true)
    let registration = Guarded<(any ListenerRegistration)?>(nil)
    let isDone = Guarded(false)
    let listener = listen(query, options: options, isOnce: true) { result in
      guard
        !isDone.withLock({ done in
          let was = done; done = true; return was
        })
      else { return }
      registration.withLock { $0 }?.remove()
      completion(result)
    }
    registration.withLock { $0 = listener }
    if isDone.withLock({ $0 }) { listener.remove() }
  }
}

extension SyncEngine {
  /// The result of a query in the cache, as a first snapshot.
  mutating func cached(_ query: ClientQuery) -> Result<ViewSnapshot, FirestoreError> {
    let result: QueryResult
    do throws(PersistenceFailure) {
      result = try store.execute(query, usePreviousResults: true)
    } catch {
      report(error)
      return .failure(error.error)
    }
    var view = ClientQueryView(query: query, remoteKeys: result.remoteKeys)
    let pending = view.compute(Dictionary(result.documents.map { ($0.name, $0) }) { first, _ in first })
    _ = view.apply(pending, resolvesLimbo: false)
    return .success(view.initialSnapshot)
  }
}
