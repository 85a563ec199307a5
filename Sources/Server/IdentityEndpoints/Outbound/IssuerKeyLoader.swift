// Loads the keys of the issuers whose tokens the databases accept, in the background.
//
// Keys are fetched at the start, once an hour, and when a token names an unknown key. The keys of an issuer that does
// not respond are kept for a day.
//
// Invariant: an issuer receives at most one request per `retrySeconds`, even if many tokens name unknown keys. A fetch
// has a time and a size limit, and its address is the configured one.

package import Identity
import Locking
package import Logging

/// Keeps the keys of other issuers up to date.
package final class IssuerKeyLoader: Sendable {
  private struct Fetches {
    /// Seconds since the Unix epoch of the last success; nil for none.
    var succeededAt: Int64?
    /// Seconds since the Unix epoch of the last attempt; nil for none.
    var attemptedAt: Int64?
  }

  /// Seconds after which keys are fetched again.
  package static let refreshSeconds: Int64 = 3600
  /// Minimum seconds between two requests to an issuer.
  package static let retrySeconds: Int64 = 60
  /// Seconds after which keys that cannot be fetched again are removed.
  package static let maximumAgeSeconds: Int64 = 86_400

  private let issuers: TrustedIssuers
  private let outbound: OutboundHTTP
  private let clock: IdentityClock
  private let timeoutSeconds: Int64
  private let fetches: Guarded<[Fetches]>
  private let log: Logger

  /// Creates a loader.
  /// - Parameter timeoutSeconds: the time within which an issuer must send its keys.
  package init(
    _ issuers: TrustedIssuers, outbound: OutboundHTTP, clock: IdentityClock = IdentityClock(),
    timeoutSeconds: Int64 = 10, log: Logger
  ) {
    self.issuers = issuers
    self.outbound = outbound
    self.clock = clock
    self.timeoutSeconds = timeoutSeconds
    self.log = log
    fetches = Guarded(Array(repeating: Fetches(), count: issuers.issuers.count))
  }

  /// Fetches keys whenever they are due, until the task is cancelled.
  package func run() async {
    guard !issuers.issuers.isEmpty else { return }
    let (ticks, continuation) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
    issuers.observeRequests { continuation.yield() }
    continuation.yield()
    await withTaskGroup { group in
      group.addTask {
        while !Task.isCancelled {
          try? await Task.sleep(for: .seconds(Self.retrySeconds))
          continuation.yield()
        }
      }
      for await _ in ticks { await refresh() }
      group.cancelAll()
    }
  }

  /// Fetches the keys that are due, from all issuers concurrently.
  package func refresh() async {
    await withTaskGroup { group in
      for index in issuers.issuers.indices where isDue(index) {
        group.addTask { await self.fetch(index) }
      }
    }
  }

  private func isDue(_ index: Int) -> Bool {
    let now = clock.milliseconds / 1000
    return fetches.withLock { fetches in
      let last = fetches[index]
      if let attemptedAt = last.attemptedAt, now - attemptedAt < Self.retrySeconds { return false }
      let isRequested = issuers.takeRequest(of: index)
      let isFresh = last.succeededAt.map { now - $0 < Self.refreshSeconds } ?? false
      guard isRequested || !isFresh else { return false }
      fetches[index].attemptedAt = now
      return true
    }
  }

  private func fetch(_ index: Int) async {
    let issuer = issuers.issuers[index]
    let now = clock.milliseconds / 1000
    do {
      let response = try await outbound.get(issuer.keysURL, seconds: timeoutSeconds)
      guard response.status == 200, let keys = PublishedKeys.parse(response.body) else {
        throw OutboundHTTP.Failure(description: "the response \(response.status) contains no keys")
      }
      if keys.isEmpty {
        log.warning("an issuer publishes no key for RS256 or ES256", metadata: ["issuer": "\(issuer.issuer)"])
      }
      issuers.setKeys(keys, of: index)
      fetches.withLock { $0[index].succeededAt = now }
    } catch {
      log.warning(
        "the keys of an issuer cannot be fetched",
        metadata: ["issuer": "\(issuer.issuer)", "error": "\(error)"])
      let isTooOld = fetches.withLock { fetches in
        fetches[index].succeededAt.map { now - $0 >= Self.maximumAgeSeconds } ?? true
      }
      if isTooOld { issuers.setKeys([:], of: index) }
    }
  }
}
