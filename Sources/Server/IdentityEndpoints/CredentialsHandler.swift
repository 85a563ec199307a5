// Serves the command `hearth credentials`. The command cannot open the data directory of a running server, because the
// server has locked it.
//
// Invariant: this handler serves only a socket in the data directory, because its requests contain no credentials. Only
// the server's user can open the socket's file.

package import Identity
import Access
package import JSON
import NIOCore
import NIOHTTP1
package import Ports

/// Serves the management of service accounts.
package struct CredentialsHandler: IdentityRouteHandler {
  private let accounts: ServiceAccounts

  /// Creates the handler.
  package init(_ accounts: ServiceAccounts) { self.accounts = accounts }

  package func response(to request: HTTPRequest, _ service: IdentityService) async throws -> HTTPResponse? {
    let limits = JSONLimits(depth: 4, bytes: 64 << 10)
    let body = (try? JSONValue(json: Array(request.body.readableBytesView), limits: limits)) ?? .null
    switch (request.head.method, request.target.rawPath) {
    case (.GET, "/credentials"): return .identity(accounts.json)
    case (.POST, "/credentials"):
      guard let name = body["name"]?.string, let project = body["project"]?.string,
        let role = body["role"]?.string.flatMap(ServiceRole.init(rawValue:)),
        let tokenURI = body["tokenUri"]?.string
      else { throw IdentityError.invalidBody("name, project, role and tokenUri are required") }
      // Opens the project's database, whose existence makes the project known to this server.
      _ = try await service.services.store.project(project)
      return .identity(
        try await accounts.create(name: name, project: project, role: role, tokenURI: tokenURI))
    case (.POST, "/credentials:revoke"):
      guard let email = body["email"]?.string else { throw IdentityError.invalidBody("email is required") }
      try await accounts.revoke(email: email, keyID: body["keyId"]?.string)
      return .identity([:])
    default: return nil
    }
  }
}

extension ServiceAccounts {
  /// The list of accounts with their keys, without any secret.
  package var json: JSONObject {
    let list = all.map { account -> JSONValue in
      .object([
        "email": .string(account.email), "project": .string(account.project),
        "role": .string(account.role.rawValue),
        "keys": .array(
          account.keys.map { key in
            .object(["id": .string(key.id), "createdAt": .string(RFC3339.text(key.createdAt * 1000))])
          }),
      ])
    }
    return ["credentials": .array(list)]
  }
}
