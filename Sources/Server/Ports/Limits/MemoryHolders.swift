// The holders of one memory budget, and the choice of the connection that is closed when the budget is full.
//
// The choice weighs bytes by the time for which they are held. A client that reads releases its bytes all the time, so they
// are always young. The choice falls on the address with the largest sum of weights, and there on the connection with
// the largest weight. Many connections of one peer therefore do not displace the single connection of another peer.
//
// Invariant: `bytes` is the sum of the bytes of all holders that are not closed.

import NIOCore

/// The holders of a budget.
struct MemoryHolders {
  private struct Entry {
    var bytes = 0
    /// Bytes released since the last change of `since` by a release.
    var releasedBytes = 0
    /// The mean of the times at which the bytes were reserved, none of them earlier than `maximumAge` ago. It is set to the
    /// current time when an eighth of the bytes was released: the client then reads.
    var since: NIODeadline
    /// Whether the server is closing the connection to free its memory.
    var isClosed = false
    /// The address of the holder.
    var address: String
    /// Closes the holder's connection; nil if it must not be closed.
    var closing: (@Sendable () -> Void)?

    mutating func add(_ added: Int, at now: NIODeadline) {
      bytes += added
      let age = min(max(now - since, .zero), Self.maximumAge)
      let mean = Double(age.nanoseconds) * Double(bytes - added) / Double(max(bytes, 1))
      since = now - .nanoseconds(Int64(mean))
    }

    mutating func remove(_ removed: Int, at now: NIODeadline) {
      precondition(removed <= bytes, "invariant: a holder releases no more than it reserved")
      bytes -= removed
      releasedBytes += removed
      guard releasedBytes >= bytes / 8 else { return }
      releasedBytes = 0
      since = now
    }

    /// The bytes, weighted by the time for which they are held. The time counts up to `maximumAge` only,
    /// because an idle client with many listens holds its few bytes for hours.
    func weight(at now: NIODeadline, with more: Int = 0) -> Double {
      let age = min(max(now - since, Self.minimumAge), Self.maximumAge)
      return Double(bytes + more) * Double(age.nanoseconds)
    }

    private static let minimumAge = TimeAmount.milliseconds(50)
    private static let maximumAge = TimeAmount.seconds(5)
  }

  private(set) var bytes = 0
  private var entries: [ObjectIdentifier: Entry] = [:]

  /// Whether the server is closing a holder's connection to free its memory.
  func isClosed(_ holder: MemoryHolder) -> Bool { entries[ObjectIdentifier(holder)]?.isClosed ?? false }

  mutating func add(_ added: Int, to holder: MemoryHolder, at now: NIODeadline = .now()) {
    let id = ObjectIdentifier(holder)
    var entry = entries[id] ?? Entry(since: now, address: holder.address, closing: holder.closing)
    guard !entry.isClosed else { return }
    bytes += added
    entry.add(added, at: now)
    entries[id] = entry
  }

  mutating func remove(_ removed: Int, from holder: MemoryHolder, at now: NIODeadline = .now()) {
    let id = ObjectIdentifier(holder)
    guard var entry = entries[id], !entry.isClosed else { return }
    bytes -= removed
    entry.remove(removed, at: now)
    entries[id] = entry.bytes == 0 ? nil : entry
  }

  /// Removes a holder at its end.
  mutating func end(_ id: ObjectIdentifier) {
    guard let entry = entries.removeValue(forKey: id), !entry.isClosed else { return }
    bytes -= entry.bytes
  }

  /// Chooses connections to close for a request, until `missing` bytes are free, and releases their bytes. Returns the
  /// functions that close them. Returns nil, and changes nothing, if the choice falls on the requesting connection
  /// itself, or on a connection that has held its bytes for less than `minimumAge`.
  mutating func close(
    toFree missing: Int, for requester: MemoryHolder, _ requested: Int, minimumAge: TimeAmount,
    at now: NIODeadline = .now()
  ) -> [@Sendable () -> Void]? {
    let requesterID = ObjectIdentifier(requester)
    let empty = Entry(since: now, address: requester.address)
    let requesterWeight = (entries[requesterID] ?? empty).weight(at: now, with: requested)
    var addresses: [String: Double] = [:]
    // Holders without a connection to close do not make their address the heaviest: nothing could be freed there.
    for (id, entry) in entries where !entry.isClosed && id != requesterID && entry.closing != nil {
      addresses[entry.address, default: 0] += entry.weight(at: now)
    }
    addresses[requester.address, default: 0] += requesterWeight
    var chosen: [ObjectIdentifier: Entry] = [:]
    var freed = 0
    while freed < missing {
      guard let heaviestAddress = addresses.max(by: { $0.value < $1.value })?.key else { return nil }
      var heaviest: (id: ObjectIdentifier, entry: Entry, weight: Double)?
      for (id, entry) in entries where !entry.isClosed && id != requesterID && chosen[id] == nil {
        guard entry.closing != nil, entry.address == heaviestAddress, now - entry.since >= minimumAge else {
          continue
        }
        let weight = entry.weight(at: now)
        if weight > heaviest?.weight ?? 0 { heaviest = (id, entry, weight) }
      }
      guard let heaviest, heaviestAddress != requester.address || heaviest.weight >= requesterWeight else {
        return nil
      }
      chosen[heaviest.id] = heaviest.entry
      freed += heaviest.entry.bytes
      addresses[heaviestAddress, default: 0] -= heaviest.weight
    }
    for id in chosen.keys { entries[id]?.isClosed = true }
    bytes -= freed
    return chosen.values.compactMap(\.closing)
  }
}
