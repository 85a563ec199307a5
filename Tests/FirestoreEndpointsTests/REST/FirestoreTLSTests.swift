// Tests REST and WebChannel over TLS, on the port that serves gRPC.

import HearthServer
import Testing

@testable import EndpointFixture

@Suite("REST and WebChannel over TLS", .timeLimit(.minutes(1)))
struct FirestoreTLSTests {
  @Test("a WebChannel listener over TLS receives a write that REST over TLS commits")
  func listenerReceivesWrites() async throws {
    let files = try TestCertificate.write()
    let tls = try TestCertificate.clientContext(protocols: ["http/1.1"])
    var configuration = HearthConfiguration.forTesting()
    configuration.tls = .init(certificate: files.certificate, key: files.key)
    let server = HearthServer(configuration)
    try await server.start()
    let port = try #require(server.firestorePort)
    let path = "/v1/\(FirestoreTestServer.documents)/c"
    func body(_ number: Int) -> String { #"{"fields":{"n":{"integerValue":"\#(number)"}}}"# }

    let created = try await RESTClient.request(port, "POST", path + "?documentId=a", body: body(1), tls: tls)
    #expect(created.status == 200, "\(created.body)")
    let read = try await RESTClient.request(port, "GET", path + "/a", tls: tls)
    #expect(read.json["fields"]["n"]["integerValue"] == .string("1"))
    let missing = try await RESTClient.request(port, "GET", path + "/b", tls: tls)
    #expect(missing.status == 404 && missing.error["status"] == .string("NOT_FOUND"))

    let (listener, opened) = try await WebChannelTestClient.handshake(
      port, "Listen", [WebChannelTestClient.listen(to: "c/a", 2)], tls: tls)
    #expect(opened.status == 200)
    let channel = try await listener.open(after: 0)
    #expect(try await channel.arrays(until: #""integerValue":"1""#).isEmpty == false)
    let updated = try await RESTClient.request(port, "PATCH", path + "/a", body: body(2), tls: tls)
    #expect(updated.status == 200)
    #expect(
      try await channel.arrays(until: #""integerValue":"2""#).last?.text.contains("documentChange") == true)
    await channel.close()

    let (writer, answer) = try await WebChannelTestClient.handshake(
      port, "Write", ["{\"database\":\"\(WebChannelTestClient.database)\"}"], tls: tls)
    #expect(answer.status == 200)
    let acknowledgements = try await writer.open(after: 0)
    _ = try await acknowledgements.arrays(until: "streamToken")
    #expect(
      try await writer.post([WebChannelTestClient.set("c/w", #"{"n":{"integerValue":"3"}}"#)], from: 1).status
        == 200)
    _ = try await acknowledgements.arrays(until: "commitTime")
    await acknowledgements.close()
    #expect(
      try await RESTClient.request(port, "GET", path + "/w", tls: tls).json["fields"]["n"]["integerValue"]
        == .string("3"))
    await server.stop()
  }
}
