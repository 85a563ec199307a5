// Tests that every endpoint of a production server rejects forged, changed and foreign tokens. The response is the
// same for all and does not show the reason.

import FirestoreProtobuf
import GRPCFraming
import HearthServer
import JSON
import SwiftProtobuf
import Testing

@testable import EndpointFixture

@Suite("Attacks on tokens at every endpoint", .serialized, .timeLimit(.minutes(5)))
struct TokenEndpointTests {
  /// The response of an endpoint: whether it accepted the token, and the text.
  private struct Outcome: Hashable {
    var isAccepted: Bool
    var text: String
  }

  private struct Endpoint {
    var name: String
    var attempt: (_ token: String) async throws -> Outcome
  }

  private static let database = "projects/demo-prod/databases/(default)"
  private static let document = database + "/documents/vault/a"
  /// The stored text that no response may contain.
  private static let marker = "stored-for-the-administrator"

  @Test("No endpoint accepts a forged token, and each endpoint gives the same response to all of them")
  func attacks() async throws {
    try await ProductionServer.with { server in
      let account = try await server.account("backend")
      let admin = try await server.accessToken(account)
      let stored = #"{"fields":{"text":{"stringValue":"\#(Self.marker)"}}}"#
      let written = try await server.firestore.send(
        "PATCH", "/v1/" + Self.document, headers: bearer(admin), body: Array(stored.utf8))
      #expect(written.status == 200)
      let put = try await server.database.send(
        "PUT", "/vault.json?ns=demo-prod", headers: bearer(admin), body: Array(#""\#(Self.marker)""#.utf8))
      #expect(put.status == 200)

      let keys = try await server.auth.send(
        "GET", "/www.googleapis.com/service_accounts/v1/jwk/securetoken@system.gserviceaccount.com")
      let attacks = try AttackTokens(
        valid: try await server.signUp().token, account: account, tokenURI: server.tokenURI,
        publicKey: try #require(keys["keys"]?.array?.first?.object)
      ).all()
      let client = try await GRPCTestClient.connect(port: server.server.firestorePort ?? 0)
      var count = 0
      for endpoint in endpoints(server, client) {
        #expect(try await endpoint.attempt(admin).isAccepted, "\(endpoint.name) accepts the administrator")
        var outcomes: [Outcome: [String]] = [:]
        for (name, token) in attacks {
          let outcome = try await endpoint.attempt(token)
          #expect(!outcome.isAccepted && !outcome.text.contains(Self.marker), "\(endpoint.name): \(name)")
          count += 1
          // The Realtime Database reports that an authentic token has expired, as the hosted product does.
          if name != AttackTokens.expired { outcomes[outcome, default: []].append(name) }
        }
        #expect(outcomes.count == 1, "\(endpoint.name): \(outcomes.map { ($0.key.text, $0.value) })")
      }
      #expect(count >= 150)
      await client.close()
    }
  }

  private func endpoints(_ server: ProductionServer, _ client: GRPCTestClient) -> [Endpoint] {
    let toolkit = "/identitytoolkit.googleapis.com"
    return [
      rest("Firestore REST", server.firestore, "GET", "/v1/" + Self.document),
      rest("Firestore REST write", server.firestore, "PATCH", "/v1/\(Self.database)/documents/c/a"),
      rest(
        "Firestore REST parameter", server.firestore, "GET", "/v1/" + Self.document, parameter: "access_token"
      ),
      rest("Rules API", server.firestore, "GET", "/v1/projects/demo-prod/rulesets"),
      rest("Realtime REST", server.database, "GET", "/vault.json?ns=demo-prod"),
      rest("Realtime REST write", server.database, "PUT", "/a.json?ns=demo-prod"),
      rest(
        "Realtime REST parameter", server.database, "GET", "/vault.json?ns=demo-prod",
        parameter: "access_token"),
      rest("Realtime REST auth", server.database, "GET", "/vault.json?ns=demo-prod", parameter: "auth"),
      rest("Realtime rules", server.database, "GET", "/.settings/rules.json?ns=demo-prod"),
      rest("accounts", server.auth, "GET", toolkit + "/v1/projects/demo-prod/accounts:batchGet"),
      rest("account creation", server.auth, "POST", toolkit + "/v1/projects/demo-prod/accounts"),
      rest("project settings", server.auth, "GET", toolkit + "/v2/projects/demo-prod/config"),
      eventStream(server),
      call("GetDocument", client) {
        try await $0.send(
          Google_Firestore_V1_GetDocumentRequest.with { $0.name = Self.document }, endStream: true)
      },
      call("Write", client) {
        try await $0.send(
          Google_Firestore_V1_WriteRequest.with { $0.database = Self.database }, endStream: true)
      },
      webChannel(server), socket(server), longPolling(server),
    ]
  }

  private func rest(
    _ name: String, _ client: AuthClient, _ method: String, _ path: String, parameter: String? = nil
  ) -> Endpoint {
    Endpoint(name: name) { token in
      let separator = path.contains("?") ? "&" : "?"
      let reply = try await client.send(
        method, path + (parameter.map { "\(separator)\($0)=\(token)" } ?? ""),
        headers: parameter == nil ? bearer(token) : [], body: method == "GET" ? nil : Array("{}".utf8))
      let text = "\(reply.status) \(String(decoding: reply.body, as: UTF8.self))"
      return Outcome(isAccepted: reply.status == 200, text: reply.status == 200 ? "" : text)
    }
  }

  private func eventStream(_ server: ProductionServer) -> Endpoint {
    Endpoint(name: "event stream") { token in
      let client = try await RawClient.connect(server.server.databasePort ?? 0)
      try await client.send(
        "GET /vault.json?ns=demo-prod&access_token=\(token) HTTP/1.1\r\nHost: localhost\r\n"
          + "Accept: text/event-stream\r\nConnection: close\r\n\r\n")
      let head = try await client.read(through: "\r\n")
      if head.contains(" 200 ") {
        await client.close()
        return Outcome(isAccepted: true, text: "")
      }
      let rest = String(decoding: await client.readToEnd(), as: UTF8.self)
      return Outcome(isAccepted: false, text: head + (rest.split(separator: "\r\n\r\n").last ?? ""))
    }
  }

  private func call(
    _ method: String, _ client: GRPCTestClient, _ send: @escaping (GRPCTestCall) async throws -> Void
  ) -> Endpoint {
    Endpoint(name: "gRPC " + method) { token in
      let call = try await client.open(method, metadata: [("authorization", "Bearer " + token)])
      // The response may arrive before the request is sent.
      try? await send(call)
      let status = try await call.status()
      return Outcome(isAccepted: status.code == .ok, text: "\(status.code) \(status.message)")
    }
  }

  private func webChannel(_ server: ProductionServer) -> Endpoint {
    Endpoint(name: "WebChannel") { token in
      let listen = """
        {"database":"\(Self.database)","addTarget":{"documents":{"documents":\
        ["\(Self.document)"]},"targetId":2}}
        """
      let (client, reply) = try await WebChannelTestClient.handshake(
        server.server.firestorePort ?? 0, "Listen", [listen], headers: "Authorization:Bearer \(token)\r\n")
      guard reply.status == 200 else {
        return Outcome(isAccepted: false, text: "\(reply.status) \(reply.text)")
      }
      let channel = try await client.open(after: 0)
      let text = try await channel.nextMessage()?.text ?? ""
      await channel.close()
      return Outcome(isAccepted: !text.contains("error"), text: text.contains("error") ? text : "")
    }
  }

  private func socket(_ server: ProductionServer) -> Endpoint {
    Endpoint(name: "WebSocket") { token in
      let port = server.server.databasePort ?? 0
      let socket = try await RawSocket.open(port: port, host: "localhost:\(port)", "v=5&ns=demo-prod")
      try await socket.send(#"{"r":1,"a":"gauth","b":{"cred":"\#(token)"}}"#)
      let reply = try await socket.next()
      try await socket.send(#"{"r":2,"a":"g","b":{"p":"/vault","q":{}}}"#)
      let value = try await socket.next()
      await socket.close()
      let isAccepted = reply.contains(#""s":"ok""#) || value.contains(Self.marker)
      return Outcome(isAccepted: isAccepted, text: isAccepted ? "" : reply + value)
    }
  }

  /// Authenticates and reads in one session of long polling.
  private func longPolling(_ server: ProductionServer) -> Endpoint {
    Endpoint(name: "long polling") { token in
      func poll(_ query: String) async throws -> String {
        let reply = try await server.database.send("GET", "/.lp?ns=demo-prod&" + query)
        #expect(reply.status == 200)
        return String(decoding: reply.body, as: UTF8.self)
      }
      let start = try await poll("start=t&ser=1&cb=7&v=5").split(separator: "pLPCommand('start','").last ?? ""
      let parts = start.split(separator: "'")
      let session = "id=\(parts.first ?? "")&pw=\(parts.dropFirst(2).first ?? "")"
      let messages = [
        #"{"t":"d","d":{"r":1,"a":"gauth","b":{"cred":"\#(token)"}}}"#,
        #"{"t":"d","d":{"r":2,"a":"g","b":{"p":"/vault","q":{}}}}"#,
      ]
      var (text, serial, segment) = ("", 1, 0)
      for message in messages {
        let data = Array(Base64.encode(Array(message.utf8), .urlSafe, padded: true).replacing("=", with: "."))
        let starts = Array(stride(from: 0, to: data.count, by: 1800))
        for start in starts {
          serial += 1
          let piece = String(data[start..<min(start + 1800, data.count)])
          text += try await poll("\(session)&ser=\(serial)&seg0=\(segment)&ts0=\(starts.count)&d0=\(piece)")
          segment += 1
        }
      }
      while !text.contains(#""r":2"#) {
        serial += 1
        text += try await poll("\(session)&ser=\(serial)")
      }
      let replies = text.split(separator: "\n").filter { $0.contains(#""r":"#) }
        .map { $0.drop { $0 != "[" } }.joined()
      let isAccepted = replies.contains(#""s":"ok""#)
      return Outcome(isAccepted: isAccepted, text: isAccepted ? "" : replies)
    }
  }
}
