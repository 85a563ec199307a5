// Tests examples of Firestore's guides with a real server: fields, queries with cursors, types, and async
// sequences.

import FirebaseCore
import FirebaseFirestore
import Foundation
import HearthServer
import Testing

private struct City: Codable, Equatable, Sendable {
  struct Place: Codable, Equatable, Sendable {
    var name: String
    var at: GeoPoint
    var opened: Date?
  }

  @DocumentID var id: String?
  @FirebaseFirestore.ServerTimestamp var updated: Timestamp?
  var name: String
  var population: Int
  var regions: [String]
  var places: [Place]
  var twins: [String: Int?]
  var badge: Data?
  var neighbour: DocumentReference?
}

@Suite("Firestore guides", .serialized, .timeLimit(.minutes(10))) struct GuideTests {
  private func ids(_ query: Query) async throws -> [String] {
    try await deadline { try await query.getDocuments(source: .server).documents.map(\.documentID) }
  }

  @Test("fields are merged, updated and deleted at any depth")
  func fields() async throws {
    try await withServer { _, port in
      let (client, other) = (TestClient.make(port: port), TestClient.make(port: port))
      let city = client.document("cities/SF")
      try await deadline {
        try await city.setData([
          "name": "SF", "stats": ["people": 800, "area": ["km": 121, "miles": 46]], "a.b": 1,
          "tags": ["x", "y", "x"],
        ])
        try await city.setData(
          ["name": "San Francisco", "stats": ["people": 900, "area": ["km": 122]]],
          mergeFields: ["stats.people", FieldPath(["stats", "area", "km"])])
        try await city.updateData([
          "stats.area.miles": FieldValue.delete(), FieldPath(["a.b"]): FieldValue.increment(Int64(2)),
          "tags": FieldValue.arrayRemove(["x"]), "stats.new.deep": true,
        ])
        try await city.setData(["stats": ["people": FieldValue.delete(), "year": 2026]], merge: true)
      }
      let read = try await deadline { try await other.document("cities/SF").getDocument() }
      #expect(read.get("name") as? String == "SF")
      #expect(read.get("stats.area") as? [String: Int] == ["km": 122])
      #expect(read.get("stats.new.deep") as? Bool == true && read.get("stats.people") == nil)
      #expect(read.get("stats.year") as? Int == 2026)
      #expect(read.get(FieldPath(["a.b"])) as? Int == 3 && read.get("tags") as? [String] == ["y"])
      #expect(read[FieldPath(["stats", "year"])] as? Int == 2026)
    }
  }

  @Test("pages begin at cursor values or after documents")
  func pages() async throws {
    try await withServer { _, port in
      let client = TestClient.make(port: port)
      let cities = client.collection("pages")
      let batch = client.batch()
      for n in 0..<10 {
        batch.setData(["n": n / 2, "name": "c\(n)"], forDocument: cities.document("d\(n)"))
      }
      try await deadline { try await batch.commit() }
      let sorted = cities.order(by: "n").order(by: "name", descending: true)
      var pages: [[String]] = []
      var query = sorted.limit(to: 4)
      while true {
        let current = query
        let page = try await deadline { try await current.getDocuments() }
        guard let last = page.documents.last else { break }
        pages.append(page.documents.map(\.documentID))
        query = sorted.limit(to: 4).start(afterDocument: last)
      }
      #expect(pages == [["d1", "d0", "d3", "d2"], ["d5", "d4", "d7", "d6"], ["d9", "d8"]])
      #expect(try await ids(sorted.start(at: [2]).end(before: [4])) == ["d5", "d4", "d7", "d6"])
      #expect(try await ids(sorted.start(after: [2, "c5"]).end(at: [3, "c7"])) == ["d4", "d7"])
      #expect(try await ids(cities.order(by: "n").limit(toLast: 3)) == ["d7", "d8", "d9"])
      #expect(
        try await ids(cities.order(by: "name").start(at: ["c2"]).end(at: ["c8"]).limit(toLast: 2)) == [
          "d7", "d8",
        ])
      #expect(
        try await ids(cities.whereField(FieldPath.documentID(), in: ["d3", "d1", "none"])) == ["d1", "d3"])
      #expect(try await ids(cities.order(by: FieldPath.documentID()).start(after: ["d7"])) == ["d8", "d9"])
      #expect(
        try await ids(
          cities.whereFilter(
            Filter.orFilter([
              Filter.whereField("name", isEqualTo: "c1"),
              Filter.andFilter([
                Filter.whereField("n", isGreaterThan: 3), Filter.whereField("name", isNotEqualTo: "c9"),
              ]),
            ]))) == ["d1", "d8"])
      #expect(try await ids(cities.whereField("n", notIn: [0, 1, 2, 3])) == ["d8", "d9"])

      // A listener to a query with a limit to the last documents: a new last document removes the first one.
      let received = Recorder<[String]>()
      let listener = cities.order(by: "name").limit(toLast: 2).addSnapshotListener { snapshot, _ in
        if let snapshot {
          received.add(
            snapshot.documents.map(\.documentID)
              + snapshot.documentChanges.map { "\($0.type) \($0.document.documentID)" })
        }
      }
      _ = try await received.first { $0 == ["d8", "d9", "added d8", "added d9"] }
      try await deadline { try await cities.document("z").setData(["n": 9, "name": "z"]) }
      _ = try await received.first { $0 == ["d9", "z", "removed d8", "added z"] }
      try await deadline { try await cities.document("z").delete() }
      _ = try await received.first {
        $0.prefix(2) == ["d8", "d9"] && $0.count == 4 && $0.contains("removed z")
      }
      listener.remove()
    }
  }

  @Test("collection groups are queried and aggregated")
  func collectionGroups() async throws {
    try await withServer { _, port in
      let client = TestClient.make(port: port)
      for (parent, n) in [("a", 1), ("b", 2), ("c", 6)] {
        try await deadline { try await client.document("parks/\(parent)/trees/t\(n)").setData(["n": n]) }
      }
      let group = client.collectionGroup("trees").whereField("n", isGreaterThan: 1)
      #expect(try await ids(group) == ["t2", "t6"])
      let sum = AggregateField.sum("n")
      let average = AggregateField.average("n")
      let values = try await deadline { () -> [Double] in
        let result = try await client.collectionGroup("trees").aggregate([
          AggregateField.count(), sum, average,
        ])
        .getAggregation(source: .server)
        return [
          result.count.doubleValue, (result.get(sum) as? NSNumber)?.doubleValue ?? -1,
          (result.get(average) as? NSNumber)?.doubleValue ?? -1,
        ]
      }
      #expect(values == [3, 9, 3])
      let none = try await deadline { () -> Bool in
        try await client.collection("nobody").aggregate([average]).getAggregation(source: .server).get(
          average) is NSNull
      }
      #expect(none)
    }
  }

  @Test("nested types are mapped in both directions")
  func nestedTypes() async throws {
    try await withServer { _, port in
      let (client, other) = (TestClient.make(port: port), TestClient.make(port: port))
      let city = City(
        id: nil, updated: nil, name: "LA", population: 4_000_000, regions: ["west"],
        places: [
          .init(
            name: "zoo", at: GeoPoint(latitude: 34.1, longitude: -118.3),
            opened: Date(timeIntervalSince1970: 5)),
          .init(name: "pier", at: GeoPoint(latitude: 34, longitude: -118.5), opened: nil),
        ], twins: ["Berlin": 1967, "none": nil], badge: Data([0, 255]),
        neighbour: client.document("cities/SD"))
      let reference = client.document("cities/LA")
      try reference.setData(from: city)
      try await deadline { try await client.waitForPendingWrites() }
      let read = try await deadline { try await other.document("cities/LA").getDocument(as: City.self) }
      #expect(read.id == "LA" && read.updated != nil && read.name == "LA" && read.places == city.places)
      #expect(read.badge == city.badge && read.neighbour?.path == "cities/SD" && read.population == 4_000_000)
      #expect(read.twins["Berlin"] == .some(.some(1967)))

      let raw: [String: Any] = [
        "bool": true, "int": 1, "double": 1.0, "nan": Double.nan, "null": NSNull(),
        "list": [1, ["a": [true]]],
        "number": NSNumber(value: true), "big": Int64.max, "empty": [String: Any](), "none": [Any](),
      ]
      let received = Recorder<String>()
      client.document("cities/raw").setData(raw) { received.add("\(String(describing: $0))") }
      #expect(try await received.first { _ in true } == "nil")
      let snapshot = try await deadline { try await other.document("cities/raw").getDocument() }
      #expect(snapshot.get("bool") as? Bool == true && snapshot.get("big") as? Int64 == .max)
      #expect((snapshot.get("nan") as? Double)?.isNaN == true && snapshot.get("null") is NSNull)
      #expect(((snapshot.get("list") as? [Any])?.last as? [String: Any])?["a"] as? [Bool] == [true])
      #expect(
        (snapshot.get("empty") as? [String: Any])?.isEmpty == true
          && (snapshot.get("none") as? [Any])?.isEmpty == true)
      // Stored values distinguish 1.0 and 1, but queries treat them as equal.
      let found = try await ids(other.collection("cities").whereField("double", isEqualTo: 1))
      #expect(found == ["raw"])
    }
  }

  @Test("a transaction runs again after a concurrent change and reads the new value")
  func transactionRetry()
    async throws
  {
    try await withServer { _, port in
      let (client, other) = (TestClient.make(port: port), TestClient.make(port: port))
      let account = client.document("accounts/a")
      try await deadline { try await account.setData(["n": 1]) }
      let runs = Locked(0)
      let result = try await deadline { () -> Int in
        let value = try await client.runTransaction { transaction, errorPointer in
          let run = runs.change {
            $0 += 1; return $0
          }
          do {
            let n = try transaction.getDocument(account).get("n") as? Int ?? 0
            if run == 1 {
              let done = DispatchSemaphore(value: 0)
              other.document("accounts/a").setData(["n": 10]) { _ in done.signal() }
              done.wait()
            }
            transaction.updateData(["n": n + 1], forDocument: account)
            transaction.setData(["of": n], forDocument: client.document("accounts/log"))
            return n + 1
          } catch {
            errorPointer?.pointee = error as NSError
            return nil
          }
        }
        return value as? Int ?? -1
      }
      #expect(result == 11 && runs.change { $0 } == 2)
      #expect(
        try await deadline { try await other.document("accounts/log").getDocument() }.get("of") as? Int == 10)
    }
  }

  // MARK: Async sequences

  @Test("snapshot sequences end when their instance is terminated", arguments: [false, true])
  func sequencesEnd(isSlow: Bool) async throws {
    try await withServer { _, port in
      let client = TestClient.make(port: port)
      try await deadline { try await client.document("ends/a").setData(["n": 1]) }
      let began = Recorder<String>()
      let ends = Recorder<String>()
      let terminated = Recorder<Bool>()
      _Concurrency.Task {
        do {
          for try await snapshot in client.collection("ends").snapshots {
            began.add("query \(snapshot.count)")
            if isSlow { _ = try await terminated.first { $0 } }
          }
          ends.add("query")
        } catch { ends.add("\(error)") }
      }
      _Concurrency.Task {
        do {
          for try await snapshot in client.document("ends/a").snapshots(includeMetadataChanges: true) {
            began.add("document \(snapshot.exists)")
          }
          ends.add("document")
        } catch { ends.add("\(error)") }
      }
      _ = try await began.first { $0 == "query 1" }
      _ = try await began.first { $0 == "document true" }
      try await deadline { try await client.terminate() }
      terminated.add(true)
      _ = try await ends.first { $0 == "query" }
      _ = try await ends.first { $0 == "document" }
    }
  }
}
