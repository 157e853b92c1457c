"""The editor door. pygls and lsprotocol live only here."""
