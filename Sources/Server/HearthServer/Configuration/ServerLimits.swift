// The product's limits that a server may raise, by the names that a limits file calls them, each with the most it may be
// raised to and why no further.
//
// Invariant: no limit lies below the product's own, so that what clients know of them stays true, nor above its ceiling,
// up to which the tests have been.

public import FirestoreEngine
import FirestoreModel
public import RealtimeModel

/// The limits of both products.
public struct ServerLimits: Sendable, Equatable {
  /// Cloud Firestore's.
  public var firestore = EngineLimits.standard
  /// The Realtime Database's.
  public var realtime = RealtimeLimits.standard

  /// The products' own limits.
  public init() {}

  /// One limit that may be raised.
  public struct Adjustable: Sendable {
    /// The product: `firestore` or `realtime`.
    public let product: String
    /// Its name in that product's part of a limits file.
    public let name: String
    /// What it is without one.
    public let standard: Int
    /// The most it may be.
    public let ceiling: Int
    /// Why it may be no more, as half a sentence.
    public let reason: String
    let path: any WritableKeyPath<ServerLimits, Int> & Sendable

    init(
      _ product: String, _ name: String, _ path: any WritableKeyPath<ServerLimits, Int> & Sendable,
      _ ceiling: Int,
      _ reason: String
    ) {
      self.product = product
      self.name = name
      self.path = path
      self.ceiling = ceiling
      self.reason = reason
      standard = ServerLimits()[keyPath: path]
    }

    /// Both names: `firestore.documentBytes`.
    public var fullName: String { "\(product).\(name)" }
  }

  /// Every limit that may be raised.
  public static let adjustable: [Adjustable] = [
    // Documents.
    Adjustable(
      "firestore", "documentBytes", \.firestore.data.documentBytes, 10 << 20,
      "a document is one row of at most 16 MiB, and small values take more there than they count"),
    Adjustable(
      "firestore", "valueBytes", \.firestore.data.valueBytes, (10 << 20) - 89,
      "a value lies in one document"),
    Adjustable(
      "firestore", "valueDepth", \.firestore.data.valueDepth, Limits.greatestValueDepth,
      "clients read 100 protobuf messages inside each other, and a level takes three"),
    Adjustable(
      "firestore", "vectorDimensions", \.firestore.data.vectorDimensions, 65_536,
      "a search compares them all in every document"),
    Adjustable(
      "firestore", "transformsPerDocument", \.firestore.data.transformsPerDocument, 5_000,
      "all writes of a database wait while they are applied"),
    Adjustable(
      "firestore", "requestBytes", \.firestore.maximumRequestBytes, 16 << 20,
      "a gRPC message has at most 17 MiB, on both sides"),
    // Queries.
    Adjustable(
      "firestore", "disjunctions", \.firestore.data.disjunctions, 500,
      "each is a search of its own"),
    Adjustable(
      "firestore", "notInValues", \.firestore.data.notInValues, 500,
      "every document that is gone over is compared with them all"),
    Adjustable(
      "firestore", "filtersAndOrders", \.firestore.data.filtersAndOrders, 500,
      "each is asked of every document that is gone over"),
    Adjustable(
      "firestore", "inequalityFields", \.firestore.data.inequalityFields, 100,
      "each orders the result, and an index has at most 100 fields"),
    Adjustable(
      "firestore", "aggregations", \.firestore.data.aggregations, 100,
      "each is computed from every document that is found"),
    Adjustable(
      "firestore", "nearestNeighbours", \.firestore.data.nearestNeighbours, 10_000,
      "they are kept in memory while the search goes on"),
    // Indexes.
    Adjustable(
      "firestore", "indexEntries", \.firestore.maximumIndexEntries, 200_000,
      "they are written with their document, and a commit has at most 64 MiB"),
    Adjustable(
      "firestore", "indexEntryBytes", \.firestore.maximumIndexEntryBytes, 16_384,
      "no names and value take more"),
    Adjustable(
      "firestore", "indexEntriesBytes", \.firestore.maximumIndexEntriesBytes, 16 << 20,
      "they are written with their document, and a commit has at most 64 MiB"),
    Adjustable(
      "firestore", "compositeIndexes", \.firestore.maximumCompositeIndexes, 10_000,
      "writes go over those of their collection"),
    Adjustable(
      "firestore", "fieldOverrides", \.firestore.maximumFieldOverrides, 10_000,
      "writes go over those of their collection"),
    // Time.
    Adjustable(
      "firestore", "historySeconds", \.firestore.historySeconds, EngineLimits.maximumHistorySeconds,
      "all that is overwritten stays on disk as long"),
    Adjustable(
      "firestore", "resumeSeconds", \.firestore.maximumResumeTokenAgeSeconds,
      EngineLimits.maximumHistorySeconds,
      "history goes back no further"),
    Adjustable(
      "firestore", "transactionIdleSeconds", \.firestore.transactionIdleTimeoutSeconds, 3_600,
      "its locks hold up others, and it reads history"),
    Adjustable(
      "firestore", "transactionSeconds", \.firestore.transactionTimeoutSeconds, 3_600,
      "its locks hold up others, and it reads history"),
    // What is open at once.
    Adjustable(
      "firestore", "openTransactions", \.firestore.maximumOpenTransactions, 100_000,
      "each is kept in memory, and all are gone over when one has lived too long"),
    Adjustable(
      "firestore", "streamTargets", \.firestore.maximumStreamTargets, 100_000,
      "every change that a stream is told of goes over all its targets"),
    // The Realtime Database.
    Adjustable(
      "realtime", "depth", \.realtime.depth, 100,
      "JSON is read to 128 levels, those of the message around it included"),
    Adjustable(
      "realtime", "keyBytes", \.realtime.keyBytes, 4_096,
      "all keys on the way to a value have \(RealtimeLimits.pathBytes) bytes together"),
    Adjustable(
      "realtime", "stringBytes", \.realtime.stringBytes, (16 << 20) - 1_024,
      "a string is one row of at most 16 MiB"),
    Adjustable(
      "realtime", "socketWriteBytes", \.realtime.socketWriteBytes, 128 << 20,
      "a message is kept in memory until it is whole, and may be twice as long"),
    Adjustable(
      "realtime", "restWriteBytes", \.realtime.restWriteBytes, 1 << 30,
      "it is kept in memory until it is written; writeSizeLimit=unlimited takes more, piece by piece"),
    Adjustable(
      "realtime", "responseBytes", \.realtime.responseBytes, 1 << 30,
      "it is kept in memory until it is sent; format=export gives more, piece by piece"),
    Adjustable(
      "realtime", "readSeconds", \.realtime.readSeconds, 24 * 3_600,
      "what is overwritten meanwhile stays on disk as long"),
    Adjustable(
      "realtime", "listensPerConnection", \.realtime.listensPerConnection, 100_000,
      "one connection must leave the others memory"),
    Adjustable(
      "realtime", "ordersPerLocation", \.realtime.ordersPerLocation, 10_000,
      "each keeps a list of the location's children in memory, which every write to them mends"),
    Adjustable(
      "realtime", "onDisconnectsPerConnection", \.realtime.onDisconnectsPerConnection, 100_000,
      "they are carried out in one commit of at most 64 MiB"),
    Adjustable(
      "realtime", "queuedOutputBytes", \.realtime.queuedOutputBytes, 1 << 30,
      "one connection must leave the others memory"),
  ]

  /// Sets a limit.
  /// - Throws: what is wrong with the value, as half a sentence that follows the limit's name.
  mutating func set(_ limit: Adjustable, to value: Int) throws(HearthError) {
    guard value >= limit.standard else {
      throw HearthError(
        "is \(value), below the product's own limit: it may be \(limit.standard) to \(limit.ceiling)")
    }
    guard value <= limit.ceiling else {
      throw HearthError("is \(value): it may be \(limit.standard) to \(limit.ceiling), since \(limit.reason)")
    }
    self[keyPath: limit.path] = value
  }

  /// Refuses limits beyond their bounds, and those that contradict each other.
  func validate() throws(HearthError) {
    for limit in Self.adjustable {
      var limits = ServerLimits()
      do throws(HearthError) { try limits.set(limit, to: self[keyPath: limit.path]) } catch {
        throw HearthError("The limit \(limit.fullName) \(error).")
      }
    }
    guard firestore.maximumResumeTokenAgeSeconds <= firestore.historySeconds else {
      throw HearthError(
        "The limit firestore.resumeSeconds is \(firestore.maximumResumeTokenAgeSeconds), and firestore.historySeconds "
          + "\(firestore.historySeconds): no token is good for longer than history is kept. Raise historySeconds, too."
      )
    }
  }

  /// Those that are not the products' own, in words.
  var raised: [String] {
    Self.adjustable.filter { self[keyPath: $0.path] != $0.standard }.map {
      "\($0.fullName)=\(self[keyPath: $0.path])"
    }
  }
}
