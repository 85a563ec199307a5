// Support for tests of the cache on disk: data directories, clients with persistence, and simulated kills.

import FirebaseCore
import Foundation
import Testing

@testable import FirebaseDatabase

/// A data directory of one test.
struct DataFolder {
  let url: URL

  init() throws {
    url = FileManager.default.temporaryDirectory.appendingPathComponent("hearth-cache-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
  }

  func remove() {
    try? FileManager.default.removeItem(at: url)
  }

  /// A file for a storage without a client.
  var file: URL { url.appendingPathComponent("cache.sqlite") }
}

extension Client {
  /// Creates a client with persistence. Clients with equal arguments use the same file.
  ///
  /// - Parameter skew: the milliseconds by which the client's clock is ahead.
  static func persistent(
    in folder: DataFolder, name: String = "persistent", port: Int = 9, namespace: String, skew: Int64 = 0
  ) throws -> Client {
    // A name can be configured again after its app was deleted.
    let options = FirebaseOptions(googleAppID: "1:1:ios:ab", gcmSenderID: "1")
    FirebaseApp.configure(name: name, options: options)
    let app = try #require(FirebaseApp.app(name: name))
    let client = Client(app: app, url: "http://127.0.0.1:\(port)?ns=\(namespace)")
    client.database.isPersistenceEnabled = true
    client.database.dataDirectory = folder.url
    client.database.clock = { Repository.milliseconds + skew }
    return client
  }

  /// Waits until the client's queue has handled all earlier requests.
  func waitForRequests() async {
    await withCheckedContinuation { continuation in
      ref.repository.enqueue { _ in continuation.resume() }
    }
    await withCheckedContinuation { continuation in
      ref.repository.enqueue { _ in continuation.resume() }
    }
  }

  /// Copies the data directory between two tasks of the client's queue. The copy contains the files that remain after a
  /// kill at this time.
  func copyData(from folder: DataFolder) async throws -> DataFolder {
    let copy = try DataFolder()
    await waitForRequests()
    await withCheckedContinuation { continuation in
      Repository.queue.async {
        try? FileManager.default.removeItem(at: copy.url)
        try? FileManager.default.copyItem(at: folder.url, to: copy.url)
        continuation.resume()
      }
    }
    return copy
  }
}

/// The files with a suffix, below a folder.
func files(in folder: DataFolder, suffix: String) throws -> [URL] {
  let all = try FileManager.default.subpathsOfDirectory(atPath: folder.url.path)
  return all.filter { $0.hasSuffix(suffix) }.map { folder.url.appendingPathComponent($0) }
}
