module expiry.example/clients/go

go 1.19
