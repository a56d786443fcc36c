// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";
import {IOrderSettler} from "../../../contracts/interfaces/IOrderSettler.sol";
import {IPermit2} from "../../../contracts/interfaces/IPermit2.sol";
import {Platform} from "./Platform.sol";

/// @notice What an external exchange does for a route: it trades at whatever price it is told.
interface IExchange {
    function trade(address tokenIn, uint256 amountIn, address tokenOut, uint256 amountOut) external;
    function callBack(address target, bytes calldata data) external;
}

/// @notice Signs orders, and fills them.
abstract contract Orders is Platform {
    uint256 internal constant SIGNER_KEY = 0xB0B;
    address internal constant PARTNER = address(0x9A47);
    address internal constant EXECUTOR = address(0xE8EC);
    address internal constant RECIPIENT = address(0x4EC1);
    string internal constant WITNESS_TYPE_STRING =
        "OrderWitness witness)OrderWitness(address recipient,address tokenOut,uint256 minAmountOut)"
        "TokenPermissions(address token,uint256 amount)";
    string internal constant PARTNER_WITNESS_TYPE_STRING =
        "PartnerOrderWitness witness)PartnerOrderWitness(address recipient,address tokenOut,uint256 minAmountOut,"
        "address partner,uint256 partnerBps,bytes32 appData)TokenPermissions(address token,uint256 amount)";

    address internal signer;
    IExchange internal exchange;
    uint256 private _nonce;

    function setUp() public virtual override {
        super.setUp();
        signer = vm.addr(SIGNER_KEY);
        exchange = IExchange(deploy("MockExchange.sol:MockExchange", ""));
        vm.startPrank(OWNER);
        settler.setExecutor(EXECUTOR, true);
        settler.setTarget(address(exchange), true);
        vm.stopPrank();
        base.mint(signer, 10 ** 30);
        quote.mint(signer, 10 ** 30);
        base.mint(address(exchange), 10 ** 30);
        quote.mint(address(exchange), 10 ** 30);
        _approvePermit2(signer, address(base));
        _approvePermit2(signer, address(quote));
    }

    function _approvePermit2(address account, address token) internal {
        vm.prank(account);
        // Without a look at what it returns, which not every token does.
        (bool done, ) = token.call(abi.encodeCall(IERC20.approve, (address(permit2), type(uint256).max)));
        assertTrue(done, "approved");
    }

    /// @dev Sells `amountIn`, unsigned.
    function _order(
        address tokenIn,
        address tokenOut,
        uint256 amountIn,
        uint256 minAmountOut
    ) internal returns (IOrderSettler.Order memory) {
        return
            IOrderSettler.Order({
                owner: signer,
                tokenIn: tokenIn,
                maxAmountIn: amountIn,
                nonce: ++_nonce,
                deadline: block.timestamp,
                recipient: RECIPIENT,
                tokenOut: tokenOut,
                minAmountOut: minAmountOut,
                signature: ""
            });
    }

    function _sign(IOrderSettler.Order memory order) internal view returns (IOrderSettler.Order memory) {
        bytes32 witness = keccak256(
            abi.encode(
                keccak256("OrderWitness(address recipient,address tokenOut,uint256 minAmountOut)"),
                order.recipient,
                order.tokenOut,
                order.minAmountOut
            )
        );
        return _signWith(order, witness, WITNESS_TYPE_STRING);
    }

    function _signFor(
        IOrderSettler.Order memory order,
        IOrderSettler.PartnerTerms memory terms
    ) internal view returns (IOrderSettler.Order memory) {
        bytes32 typehash = keccak256(
            "PartnerOrderWitness(address recipient,address tokenOut,uint256 minAmountOut,address partner,uint256 partnerBps,bytes32 appData)"
        );
        bytes32 witness = keccak256(
            abi.encode(
                typehash,
                order.recipient,
                order.tokenOut,
                order.minAmountOut,
                terms.partner,
                terms.partnerBps,
                terms.appData
            )
        );
        return _signWith(order, witness, PARTNER_WITNESS_TYPE_STRING);
    }

    function _signWith(
        IOrderSettler.Order memory order,
        bytes32 witness,
        string memory witnessType
    ) private view returns (IOrderSettler.Order memory) {
        bytes32 digest = permit2.digestOf(
            IPermit2.PermitTransferFrom(
                IPermit2.TokenPermissions(order.tokenIn, order.maxAmountIn),
                order.nonce,
                order.deadline
            ),
            address(settler),
            witness,
            witnessType
        );
        (uint8 v, bytes32 r, bytes32 s) = vm.sign(SIGNER_KEY, digest);
        order.signature = abi.encodePacked(r, s, v);
        return order;
    }

    /// @dev An order for one base, or with it.
    function _signed(bool isBuy, uint256 amountIn, uint256 minAmountOut) internal returns (IOrderSettler.Order memory) {
        (address tokenIn, address tokenOut) = _pair(isBuy);
        return _sign(_order(tokenIn, tokenOut, amountIn, minAmountOut));
    }

    function _fill(IOrderSettler.Order memory order, bool exactOut, uint256 fee) internal returns (uint256, uint256) {
        vm.prank(EXECUTOR);
        return exactOut ? settler.fillOnCurveExactOut(fee, order) : settler.fillOnCurve(fee, order);
    }

    function _fillRoute(
        IOrderSettler.Order memory order,
        IOrderSettler.Route memory route
    ) internal returns (uint256, uint256) {
        vm.prank(EXECUTOR);
        return settler.fillRoute(order, route);
    }

    function _fillPartner(
        IOrderSettler.Order memory order,
        IOrderSettler.PartnerTerms memory terms,
        IOrderSettler.Route memory route
    ) internal returns (uint256, uint256) {
        vm.prank(EXECUTOR);
        return settler.fillPartnerRoute(order, terms, route);
    }

    function _route(uint256 amountIn, uint256 fee) internal pure returns (IOrderSettler.Route memory route) {
        route.amountIn = amountIn;
        route.feeAmount = fee;
    }

    /// @dev Adds a call of the exchange that takes `amountIn` of up to `allowed`.
    function _via(
        IOrderSettler.Route memory route,
        address tokenIn,
        uint256 amountIn,
        uint256 allowed,
        address tokenOut,
        uint256 amountOut
    ) internal view returns (IOrderSettler.Route memory) {
        return
            _step(
                route,
                address(exchange),
                tokenIn,
                allowed,
                abi.encodeCall(IExchange.trade, (tokenIn, amountIn, tokenOut, amountOut))
            );
    }

    function _step(
        IOrderSettler.Route memory route,
        address target,
        address token,
        uint256 allowed,
        bytes memory data
    ) internal pure returns (IOrderSettler.Route memory) {
        return _stepAt(route, IOrderSettler.Call(target, token, allowed, 0, data));
    }

    function _stepAt(
        IOrderSettler.Route memory route,
        IOrderSettler.Call memory step
    ) internal pure returns (IOrderSettler.Route memory) {
        IOrderSettler.Call[] memory calls = new IOrderSettler.Call[](route.calls.length + 1);
        for (uint256 i = 0; i < route.calls.length; ++i) {
            calls[i] = route.calls[i];
        }
        calls[route.calls.length] = step;
        route.calls = calls;
        return route;
    }
}
